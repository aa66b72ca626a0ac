"""Reports: a run told as one self-contained HTML file, a study as a small folder.

A sweep's pictures are in ``sweep_results``; who needs them brings Optuna along.
"""

from attnlab.report.run_report import write_report
from attnlab.report.study_results import read_results, write_results

__all__ = ["read_results", "write_report", "write_results"]
