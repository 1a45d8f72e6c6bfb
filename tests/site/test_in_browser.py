"""The built site in a real browser, with everything outside of this machine refused."""

from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

pytestmark = pytest.mark.browser

LESSON = "course/05_retracing/05_retracing.html"
KINDS = ("index.html", LESSON, "labs/lab05_retracing.html", "docs/observe.html", "proof.html", "reports.html")
WIDER_THAN_THE_WINDOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def test_every_page_on_a_phone_is_quiet_local_and_no_wider_than_it(site: Path, window: Any) -> None:
    phone = window(width=360, height=740)
    wide = {}
    for path in sorted(path for path in site.rglob("*.html") if "_static" not in path.parts):
        name = str(path.relative_to(site))
        page = phone.open(name)
        if (more := page.evaluate(WIDER_THAN_THE_WINDOW)) > 0:
            wide[name] = more
    assert phone.seen.nothing(), phone.seen
    assert wide == {}


@pytest.mark.parametrize("name", KINDS)
def test_pages_of_each_kind_have_no_serious_fault_of_accessibility(window: Any, name: str) -> None:
    faults = []
    for scheme in ("light", "dark"):
        view = window(scheme=scheme)
        page = view.open(name)
        assert page.evaluate("document.documentElement.dataset.theme") == scheme
        assert view.seen.nothing(), view.seen
        # What is folded is looked at as well.
        page.evaluate("document.querySelectorAll('details').forEach(node => { node.open = true })")
        # A lesson repeats the same few kinds of cells a hundred times; the first ones hold each of them.
        page.evaluate("[...document.querySelectorAll('div.cell')].slice(12).forEach(node => node.remove())")
        # What fades in is not looked at half way, when its colours are others.
        page.evaluate("Promise.all(document.getAnimations().map(one => { one.finish(); return one.finished }))")
        found = Axe().run(page, options={"preload": False}).response["violations"]
        faults += [
            (scheme, fault["id"], node["html"][:200], node.get("failureSummary", "")[:300])
            for fault in found
            if fault["impact"] in {"serious", "critical"}
            for node in fault["nodes"]
        ]
    assert faults == []


def test_answers_open_by_keyboard_and_without_script(window: Any) -> None:
    page = window(script=False).open(LESSON)
    cell = page.locator(".cell", has=page.locator("details.hide")).first
    explained = page.locator(".explained").first
    assert not cell.locator(".cell_output").is_visible()
    assert not explained.is_visible()
    cell.locator("summary").focus()
    page.keyboard.press("Enter")
    assert cell.locator(".cell_output").is_visible()
    assert explained.is_visible()


def test_one_button_opens_and_folds_all_answers(window: Any) -> None:
    page = window().open(LESSON)
    page.get_by_role("button", name="Open all answers").click()
    assert page.locator("details.hide.below-input:not([open])").count() == 0
    page.get_by_role("button", name="Fold all answers").click()
    assert page.locator("details.hide.below-input[open]").count() == 0


def test_search_finds_a_term_of_a_lesson(window: Any) -> None:
    view = window()
    page = view.open("search.html?q=weak+types")
    page.locator("#search-results li a").first.wait_for()
    assert "05 · One contract, one compile > Weak types" in page.locator("#search-results").inner_text()
    assert view.seen.nothing(), view.seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_chart_is_drawn_in_the_colours_of_the_page(window: Any, scheme: str) -> None:
    page = window(scheme=scheme).open("index.html")
    ground, paper, ink = page.evaluate(
        """() => {
            const style = (node, name) => getComputedStyle(node)[name];
            const chart = document.querySelector("figure.chart svg");
            return [style(document.body, "backgroundColor"), style(chart.querySelector("rect"), "fill"),
                    style(chart.querySelector("text"), "fill")];
        }"""
    )
    assert paper == ground
    assert ink != paper


def test_record_of_a_page_holds_what_it_does_wrong(window: Any) -> None:
    view = window()
    page = view.open("index.html")
    page.set_content('<img src="http://example.test/a.png"><script>throw new Error("planted")</script>')
    page.wait_for_timeout(200)
    assert view.seen.remote == ["http://example.test/a.png"]
    assert any("planted" in error for error in view.seen.errors)
