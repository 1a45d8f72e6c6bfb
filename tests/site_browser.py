"""A browser page with a record of what it asks for and of its errors; whatever lies outside of this machine is refused."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """What a page asked for and said: addresses outside of this machine, failed requests, errors in its console."""

    remote: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def nothing(self) -> bool:
        return not (self.remote or self.failed or self.errors)


@dataclass(frozen=True)
class Window:
    """A browser window on a served folder."""

    page: Any
    base: str
    seen: Seen

    def open(self, name: str) -> Any:
        self.page.goto(f"{self.base}/{name}", wait_until="load")
        return self.page


def watched(context: Any, base: str) -> Window:
    """A new page of a context, with a record of what it asks for and of its errors."""
    seen = Seen()

    def answer(route: Any) -> None:
        if route.request.url.startswith((base, "data:", "blob:", "file:")):
            route.continue_()
        else:
            seen.remote.append(route.request.url)
            route.abort()

    context.route("**/*", answer)
    page = context.new_page()
    page.on("response", lambda reply: seen.failed.append(reply.url) if reply.status >= 400 else None)
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
    return Window(page, base, seen)
