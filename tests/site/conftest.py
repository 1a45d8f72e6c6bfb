"""One build of the site and of the slides for all tests here, served on this machine, and a browser that lets nothing out.

These tests run in the environment of the site's tools (`.venv-site`), which has neither JAX nor the course's package in it.
`TRACEONCE_SITE` and `TRACEONCE_SLIDES` name folders that were built before, for work on the tests themselves.
"""

import os
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from site_browser import Window, watched

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs" / "site"), str(ROOT / "src")]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """The browser's own record is looked at instead."""


def _served(folder: Path) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site; a warning of the build fails every test that needs it."""
    if ready := os.environ.get("TRACEONCE_SITE"):
        return Path(ready).resolve()
    import make_site

    place = tmp_path_factory.mktemp("built") / "site"
    assert make_site.main(["--out", str(place)]) == 0, "the site was not built, or with warnings: they stand above"
    return place


@pytest.fixture(scope="session")
def site_address(site: Path) -> Iterator[str]:
    yield from _served(site)


@pytest.fixture
def window(chromium: Any, site_address: str) -> Iterator[Any]:
    """`window(width=360, scheme="dark")` opens a window on the site; whatever it asks for outside of this machine is refused."""
    contexts = []

    def opened(*, width: int = 1280, height: int = 800, scheme: str = "light", script: bool = True) -> Window:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, java_script_enabled=script
        )
        contexts.append(context)
        return watched(context, site_address)

    yield opened
    for context in contexts:
        context.close()
