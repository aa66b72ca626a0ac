"""Sphinx's settings for the documentation site: ``sphinx-build -W docs build/site``.

Nothing is fetched and no notebook is executed: tutorials show the outputs that they keep. Pages for
commands and public names are written from their help texts and docstrings at each build
(``reference_pages.py``).
"""

import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from reference_pages import write_reference

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "attnlab"
author = "the authors of attnlab"
version = release = version_of("attnlab")

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["tutorials/runs"]
suppress_warnings = [
    "myst.header",  # sections of doctor pages and studies may skip a level
    "mystnb.unknown_mime_type",  # outputs are kept for several front ends
]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # widgets need a kernel; a page from disk has none
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
autoclass_content = "class"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 80

html_theme = "furo"
html_title = f"attnlab {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_search_summary = False  # summaries are fetched, which a page from disk may not do
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}


OUTSIDE = re.compile(r"\]\((?P<path>(?:\.\./)+[^)#:]+\.md)\)")


def link_outside(app: "Sphinx", page: str, source: list[str]) -> None:
    """Markdown files outside this folder are no pages of the site: links to them give the file."""

    def link(match: re.Match[str]) -> str:
        path = (Path(app.srcdir) / page).parent / match["path"]
        inside = path.resolve().is_relative_to(Path(app.srcdir).resolve())
        return match[0] if inside else f"](path:{match['path']})"

    source[0] = OUTSIDE.sub(link, source[0])


def setup(app: "Sphinx") -> None:
    """Write the generated pages before Sphinx looks for documents."""
    app.connect("builder-inited", lambda app: write_reference(Path(app.srcdir) / "reference"))
    app.connect("source-read", link_outside)
