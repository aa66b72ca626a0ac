"""Models as ONNX graphs that carry their own instructions, held against torch before they are written."""

from attnlab.export.graph import Check, Graph, compare, make_graph, require_onnx
from attnlab.export.instructions import Instructions, make_instructions
from attnlab.export.runs import Export, export_run
from attnlab.export.trial import Trial, run_trial

__all__ = [
    "Check", "Export", "Graph", "Instructions", "Trial", "compare", "export_run", "make_graph",
    "make_instructions", "require_onnx", "run_trial",
]  # fmt: skip
