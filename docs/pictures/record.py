"""Record the moving picture at the top of the README: the live chart while a cell runs, in a real JupyterLab.

It needs Chromium, the environment of the tests (`make env KIND=dev`), and Pillow, which is no part of that environment:

    PYTHONPATH=folder-with-pillow .venv/bin/python docs/pictures/record.py

It writes `docs/pictures/live_chart.gif`. The shapes, the counts and the reason in the picture are what the notebook did.
"""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests"))

import lab_browser  # noqa: E402

STEP = """import time, jax, jax.numpy as jnp
from traceonce import chart, explain, watch

@watch
@jax.jit
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w)"""
LOOP = """w, rows = jnp.ones(4), jnp.ones((100, 4))
with watch() as seen:
    chart(seen)
    for epoch in range(3):
        for at in range(0, 100, 8):      # 100 rows, batches of 8
            w = step(w, rows[at : at + 8])
            time.sleep(0.12)
print(explain(seen))"""
EVERY_MS = 400
LAST_MS = 6000


def frames(page: lab_browser.LabPage) -> list[Image.Image]:
    """A picture of the second cell every `EVERY_MS` from its start to its end."""
    page.run_all()
    page.wait_for_prompt(1, "[*]:")
    cell = page.panel.locator(".jp-Cell").nth(1)
    taken = []
    while True:
        done = page.prompts()[1] != "[*]:"
        if done:
            page.page.wait_for_timeout(1500)
        taken.append(Image.open(io.BytesIO(cell.screenshot())).convert("RGB"))
        if done:
            return taken
        page.page.wait_for_timeout(EVERY_MS)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        checkout = lab_browser.write_checkout(Path(folder), {"demo.ipynb": lab_browser.code_notebook(STEP, LOOP)})
        desk = lab_browser.RunningDesk(checkout)
        browser = playwright.chromium.launch(
            executable_path=lab_browser.chromium_path(), args=list(lab_browser.CHROMIUM_FLAGS)
        )
        try:
            page = lab_browser.LabPage(browser.new_page(viewport={"width": 1000, "height": 1100}), Path(folder))
            page.open(desk, "demo.ipynb")
            page.page.keyboard.press("Control+b")  # the side bar away
            taken = frames(page)
        finally:
            browser.close()
            desk.stop()
    # The cell grows while its output comes; the picture has the size of its end from the start.
    width, height = taken[-1].size
    whole = []
    for picture in taken:
        canvas = Image.new("RGB", (width, height), "white")
        canvas.paste(picture, (0, 0))
        whole.append(canvas.quantize(64))
    target = HERE / "live_chart.gif"
    pause = [EVERY_MS // 2] * (len(whole) - 1) + [LAST_MS]
    whole[0].save(target, save_all=True, append_images=whole[1:], duration=pause, loop=0, optimize=True)
    whole[-1].convert("RGB").save(Path(tempfile.gettempdir()) / "live_chart_end.png")
    print(f"{target.name}: {len(whole)} frames, {target.stat().st_size // 1000} kB, {width} x {height}")


if __name__ == "__main__":
    main()
