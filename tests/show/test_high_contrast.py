"""The colours of pictures where the system asks for high contrast, in a real browser."""

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

STYLES = Path(__file__).resolve().parents[2] / "src" / "traceonce" / "show" / "static" / "traceonce.css"
# JupyterLab's dark theme says light ink; the system's ground may be white all the same.
PICTURE = """
<body data-jp-theme-light="false" style="--jp-ui-font-color1: rgb(250, 250, 250)">
<div class="to to-chart"><svg class="to-picture"><text class="to-label">2 calls</text><path class="to-axis" d="M0 0H9"/></svg></div>
"""
COLOURS = """() => {
    const probe = document.createElement("p");
    probe.style.color = "CanvasText";
    document.body.append(probe);
    const colour = (place, name) => getComputedStyle(document.querySelector(place))[name];
    return [getComputedStyle(probe).color, colour(".to-label", "fill"), colour(".to-axis", "stroke")];
}"""


@pytest.mark.parametrize("forced", ["active", "none"])
def test_pictures_take_the_colours_of_a_system_with_high_contrast(chromium: Any, forced: str) -> None:
    context = chromium.new_context(forced_colors=forced)
    page = context.new_page()
    page.set_content(PICTURE)
    page.add_style_tag(content=STYLES.read_text("utf-8"))
    ink, label, axis = page.evaluate(COLOURS)
    context.close()
    assert (label == ink) is (forced == "active")
    assert (axis == ink) is (forced == "active")
