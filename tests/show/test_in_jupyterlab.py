"""The widgets in a real JupyterLab and a real Chromium."""

import json
import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SETUP = """import time
import jax, jax.numpy as jnp
from traceonce import chart, predict, watch

@watch
@jax.jit
def step(w, x):
    return w + x.sum()"""

BUSY = """with watch() as seen:
    chart(seen)
    for n in range({calls}):
        w = step(0.0, jnp.ones(1 + n // 60))
        time.sleep(0.02)"""

MEMORY = """from traceonce import watch_memory
with watch_memory(rate=50) as memory:
    chart(memory)
    held = []
    for n in range(150):
        held.append(jnp.ones((1000, 100)))
        w = step(0.0, held[-1][0])
        time.sleep(0.02)"""

CHILD = """from traceonce.sandbox import run_capped
from traceonce.show import child_chart
drawn = child_chart(300)
greedy = "import time; held = []\\nwhile True:\\n held.append(bytearray(b'x') * 10**7); time.sleep(0.1)"
drawn.close(run_capped(greedy, memory_mb=300, on_sample=drawn))"""

PLANS = """from traceonce import plan
def spread(x):
    return jnp.sort(jnp.sin(x[:, None] * x[None, :]), axis=0).sum()
xs = jax.ShapeDtypeStruct((64, 200), jnp.float32)
chart(plan.compare(wide=(jax.vmap(spread), xs), looped=(lambda v: jax.lax.map(spread, v), xs)))"""

DOTS = ".to-dots"


def calls_drawn(desk: Any, number: int) -> tuple[int, int]:
    """The running count in text, and the number of strokes in the picture."""
    said = desk.cell(number).locator(".to-counts").inner_text()
    strokes = desk.cell(number).locator(f".to-panel {DOTS}").get_attribute("d") or ""
    found = re.match(r"(\d+) calls?", said)
    assert found is not None, said
    return int(found[1]), strokes.count("M")


def boxes_that_overlap(desk: Any, number: int) -> list[str]:
    """Pairs of texts in a cell's pictures whose boxes overlap by more than a pixel."""
    return desk.cell(number).evaluate(
        """cell => [...cell.querySelectorAll(".to-picture")].flatMap((picture) => {
            const boxes = [...picture.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]);
            return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([b, q]) =>
                p.left < q.right - 1 && q.left < p.right - 1 && p.top < q.bottom - 1 && q.top < p.bottom - 1
            ).map(([b]) => `${a} | ${b}`));
        })"""
    )


QUESTION = 'guess = predict("09-B{n}", "Which value?", ["0.01", "0.1", "it raises"])'

CROWDED = """from traceonce.show import Arm, Bars, Limit, Line, Timeline
with watch() as seen:
    chart(seen)
    for n in range(12):
        step(0.0, jnp.ones(1 + n))
lines = tuple(Line(f"series {n}", ((0.0, 1e6), (1.0, 5e8 + n * 1e5))) for n in range(4))
chart(Timeline("memory", lines, Limit("the cap", 5.01e8), "killed by SIGKILL"))
arms = tuple(Arm(f"a rather long name of an arm, number {n}", (1e6 * n, 1e9)) for n in range(5))
chart(Bars("planned bytes", ("arguments", "temporaries"), arms))"""


@pytest.fixture(scope="module")
def shown(desk: Any) -> Any:
    """A notebook that has run: a chart, crowded charts, and predictions that are still open."""
    cells = [SETUP, BUSY.format(calls=5), CROWDED, QUESTION.format(n=1), "guess.reveal(0.01)", "print(guess.answer)"]
    desk.open("shown.ipynb", [*cells, QUESTION.format(n=1), QUESTION.format(n=2) + "\nguess.reveal(0.1)"])
    for number in range(4):
        desk.run(number)
    desk.cell(1).locator("section[data-done=true]").wait_for()
    return desk


def test_labels_do_not_collide(shown: Any) -> None:
    shown.cell(2).locator(".to-picture").nth(2).wait_for()
    assert shown.cell(2).locator(".to-picture text").count() > 30
    assert boxes_that_overlap(shown, 2) == []


def luminance(colour: str) -> float:
    """WCAG's relative luminance of `rgb(r, g, b)`."""
    channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_colours_have_contrast_in_the_light_theme(shown: Any) -> None:
    assert_contrast(shown, 1, 3, dark=False)


def assert_contrast(desk: Any, chart_cell: int, question_cell: int, *, dark: bool) -> None:
    chart, question = desk.cell(chart_cell).locator(".to"), desk.cell(question_cell).locator(".to")

    def style(locator: Any, name: str) -> str:
        return locator.first.evaluate("(e, name) => getComputedStyle(e)[name]", name)

    paper = style(chart, "backgroundColor")
    assert (luminance(paper) < 0.1) == dark
    assert contrast(style(chart, "color"), paper) > 7
    assert contrast(style(question, "color"), style(question, "backgroundColor")) > 7
    assert contrast(style(chart.locator("text.to-label"), "fill"), paper) > 7
    assert contrast(style(chart.locator("text.to-tick"), "fill"), paper) > 4
    assert contrast(style(chart.locator(f".to-panel {DOTS}"), "stroke"), paper) > 4.5
    assert contrast(style(chart.locator(".to-panel .to-mark"), "fill"), paper) > 4.5


def test_a_chart_is_reached_named_and_unfolded_by_keyboard(shown: Any) -> None:
    shown.cell(1).locator(".cm-content").click()
    shown.page.keyboard.press("Escape")
    reached = []
    for _ in range(25):
        shown.page.keyboard.press("Tab")
        reached.append(
            shown.page.evaluate(
                "[document.activeElement.tagName.toLowerCase(), document.activeElement.getAttribute('aria-label')]"
            )
        )
        if reached[-1][0] == "summary":
            break
    assert reached[-1][0] == "summary", reached
    names = [label for tag, label in reached if tag == "svg"]
    assert len(names) == 1
    assert names[0].startswith("Time of each call of step. 5 calls, 1 trace, 1 compile.")
    shown.page.keyboard.press("Enter")
    assert shown.page.locator(".jp-Notebook.jp-mod-commandMode").count() == 1
    rows = shown.cell(1).locator("section table tbody tr")
    rows.wait_for()
    assert rows.count() == 1
    assert rows.inner_text().split() == ["step", "5", "1", "1", "1", "0"]
    shown.page.keyboard.press("Space")
    rows.wait_for(state="hidden")


def test_a_prediction_is_answered_by_keyboard_and_revealed(shown: Any) -> None:
    group = shown.cell(3).get_by_role("group", name="Prediction 09-B1")
    group.get_by_role("radio", name="0.01").focus()
    active = "[...document.querySelectorAll('.jp-Notebook .jp-Cell')].findIndex((c) => c.matches('.jp-mod-active'))"
    before = shown.page.evaluate(active)
    shown.page.keyboard.press("ArrowDown")
    assert shown.page.evaluate(active) == before  # the arrow was for the choices, not for the notebook
    second = group.get_by_role("radio", name="0.1", exact=True)
    assert second.is_checked()
    assert second.evaluate("e => e === document.activeElement")
    assert group.get_by_role("status").inner_text() == "Your answer: 0.1. Now run the cells below."
    asked = shown.prompt(3)
    second.click()
    shown.page.keyboard.press("Shift+Enter")  # the notebook's key: the cell runs again and keeps the answer
    rerun = shown.cell(3).locator(".jp-InputPrompt").filter(has_text=re.compile(r"\[\d+\]")).filter(has_not_text=asked)
    rerun.wait_for(timeout=30_000)
    group = shown.cell(3).get_by_role("group", name="Prediction 09-B1")
    assert shown.cell(3).get_by_role("radio", name="0.1", exact=True).is_checked()
    shown.run(5)
    assert shown.cell(5).locator(".jp-OutputArea-output").inner_text().strip() == "0.1"
    shown.run(4)
    verdict = "You predicted 0.1; measured 0.01: not as predicted."
    shown.cell(4).get_by_text(verdict).wait_for()
    assert shown.cell(4).locator(".jp-OutputArea-output").first.inner_text().strip() == "09-B1 measured: 0.01"
    shown.cell(3).get_by_text(verdict).wait_for()
    assert shown.cell(3).locator("input:disabled").count() == 3
    choices = [" ".join(text.split()) for text in shown.cell(3).locator(".to-choice").all_inner_texts()]
    assert choices == ["0.01 (measured)", "0.1 (your answer)", "it raises"]
    shown.run(6)
    shown.cell(6).get_by_text("0.1 stays your prediction").wait_for()


def test_revealing_without_an_answer_is_said_gently(shown: Any) -> None:
    shown.run(7)
    shown.cell(7).get_by_text("No prediction was recorded before this").first.wait_for()


def test_the_colours_have_contrast_in_the_dark_theme(desk: Any) -> None:
    desk.open("dark.ipynb", [SETUP, BUSY.format(calls=10), QUESTION.format(n=3)], theme="Dark")
    for number in range(3):
        desk.run(number)
    assert_contrast(desk, 1, 2, dark=True)
    desk.picture("calls-Dark-done", 1)


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_memory_and_a_child_move_while_their_cell_runs_and_plans_stand_beside(desk: Any, theme: str) -> None:
    desk.open(f"bytes{theme}.ipynb", [SETUP, MEMORY, CHILD, PLANS], theme=theme)
    desk.run(0)
    for number, name in ((1, "memory"), (2, "child")):
        desk.run(number, wait=False)
        finding = desk.cell(number).locator(".to-finding")
        desk.cell(number).locator(".to-picture").wait_for(timeout=60_000)
        seen = []
        for _ in range(3):
            seen.append((finding.inner_text(), desk.cell(number).locator(".to-line").first.get_attribute("d")))
            desk.picture(f"{name}-{theme}-{len(seen)}", number)
            desk.page.wait_for_timeout(600)
        assert desk.prompt(number) == "[*]:", "the cell was over before it could be looked at"
        assert len(set(seen)) == 3  # words and line have moved each time
        desk.wait_for(number)
        desk.cell(number).locator("section[data-done=true]").wait_for()
        desk.picture(f"{name}-{theme}-done", number)
        # The text and the still picture are for places without widgets.
        assert desk.cell(number).locator(".jp-RenderedText:visible, .jp-RenderedSVG:visible").count() == 0
        assert boxes_that_overlap(desk, number) == []
    assert "Ended: killed at the cap." in desk.cell(2).locator("[role=status]").inner_text()
    assert {"the cap 300 MB", "killed at the cap"} <= set(desk.cell(2).locator(".to-picture text").all_text_contents())
    desk.run(3)
    desk.cell(3).locator(".to-picture").wait_for()
    assert "wide takes" in desk.cell(3).locator(".to-finding").inner_text()
    assert boxes_that_overlap(desk, 3) == []
    desk.picture(f"plans-{theme}", 3)
    paper = desk.cell(3).locator(".to").first.evaluate("e => getComputedStyle(e).backgroundColor")
    assert (luminance(paper) < 0.1) == (theme == "Dark")


def test_a_chart_moves_while_its_cell_runs_and_survives_reload_and_the_end_of_its_kernel(desk: Any) -> None:
    desk.open("moves.ipynb", [SETUP, BUSY.format(calls=240)])
    desk.run(0)
    desk.run(1, wait=False)
    readings = []
    desk.cell(1).locator(".to-picture").wait_for(timeout=60_000)
    for _ in range(2):
        readings.append((*calls_drawn(desk, 1), desk.prompt(1)))
        desk.picture(f"calls-Light-{len(readings)}", 1)
        desk.page.wait_for_timeout(1200)
    (calls, strokes, prompt), (later_calls, later_strokes, later_prompt) = readings
    assert (prompt, later_prompt) == ("[*]:", "[*]:")
    assert later_calls > calls
    assert later_strokes > strokes
    desk.wait_for(1)
    assert_last_picture(desk)
    assert desk.cell(1).locator("[role=status]").inner_text() == "step: 240 calls, 4 traces, 4 compiles"
    # The still picture and its text are for places without widgets: here they are not drawn.
    drawn = desk.cell(1).locator("section svg:visible").count()
    assert desk.cell(1).locator(".jp-OutputArea-output svg:visible").count() == drawn > 0
    assert desk.cell(1).locator(".jp-RenderedText:visible").count() == 0

    desk.save()
    desk.reopen("moves.ipynb")
    assert_last_picture(desk)
    desk.end_kernels()
    desk.reopen("moves.ipynb")
    assert_last_picture(desk)
    widgets = json.loads((desk.folder / "moves.ipynb").read_text())["metadata"]["widgets"]
    assert len(json.dumps(widgets)) < 60_000


def assert_last_picture(desk: Any) -> None:
    desk.cell(1).locator("section[data-done=true]").wait_for(timeout=60_000)
    assert calls_drawn(desk, 1) == (240, 236)
    assert desk.cell(1).locator(".to-counts").inner_text().startswith("240 calls, 4 traces, 4 compiles")
    assert desk.cell(1).locator(".to-panel .to-mark").count() == 4
