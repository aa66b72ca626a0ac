"""Models as files for other programs."""

from attnlab.export.graph import Graph, make_graph
from attnlab.export.runs import export_run
from attnlab.export.trials import Trial, run_trial

__all__ = ["Graph", "Trial", "export_run", "make_graph", "run_trial"]
