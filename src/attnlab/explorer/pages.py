"""Where the page's modules lie."""

from importlib.resources import files
from pathlib import Path

MODULES = Path(str(files("attnlab"))) / "explorer" / "js"
