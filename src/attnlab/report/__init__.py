"""Reports: a run told as one self-contained HTML file."""

from attnlab.report.run_report import write_report

__all__ = ["write_report"]
