"""Reports: a run told as one self-contained HTML file, a study as a small folder."""

from attnlab.report.run_report import write_report
from attnlab.report.study_results import read_results, write_results
from attnlab.report.sweep_results import write_sweep_figures

__all__ = ["read_results", "write_report", "write_results", "write_sweep_figures"]
