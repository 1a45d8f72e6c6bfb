"""Sphinx's settings for the site. `make_site.py` prepares the sources and calls Sphinx; nothing here runs a notebook."""

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2] / "src")]

project = "Trace Once"
html_title = "Trace Once"
language = "en"
extensions = ["myst_nb"]
exclude_patterns: list[str] = []

# The outputs are those that the checks compared. Charts are stored as pictures, so no widget's script is needed.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_render_markdown_format = "commonmark"
nb_merge_streams = True
nb_code_prompt_show = "Show what happened"
nb_code_prompt_hide = "Hide what happened"

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_heading_slug_func = "traceonce.headings.jupyter_anchor"

html_theme = "sphinx_book_theme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
# The reader's system decides between light and dark, until the reader does.
html_context = {"default_mode": "auto"}
html_theme_options: dict[str, Any] = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "home_page_in_toc": False,
    "navbar_start": [],
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


def _visit_math(self: Any, node: nodes.math | nodes.math_block) -> None:
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    self.body.append(convert(node.astext(), display=display))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    # A formula as MathML: every current browser draws it, and no script has to be fetched.
    app.add_html_math_renderer("mathml", inline_renderers=(_visit_math, None), block_renderers=(_visit_math, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


html_math_renderer = "mathml"
