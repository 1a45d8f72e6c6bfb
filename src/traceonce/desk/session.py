"""What `make learn` and `make author` do, from the checkout to a printed address."""

import errno
import fcntl
import json
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import traceonce
from traceonce.desk import copies, layout
from traceonce.desk.server import Place, choose_port, serve
from traceonce.errors import TraceOnceError, UsageError

_ADDRESS = "address.json"
_OTHER_START_SECONDS = 20.0


def learn(
    *,
    desk: Path | None = None,
    open_browser: bool = True,
    port: int | None = None,
    host: str = "127.0.0.1",
    authoring: bool = False,
) -> int:
    """Make or refresh a desk and serve JupyterLab on it until it is stopped; returns the exit code.

    **Arguments**

    - `desk`: the learner's folder; `work/` in the checkout by default.
    - `port`: 0 takes any free one; without one, the first free one from 8888 on.
    - `host`: the address to listen on.
    - `authoring`: serve the checkout itself, `.py` files opening as notebooks, instead of a desk.

    **Raises** `TraceOnceError` where something that a person can mend is in the way.
    """
    checkout = find_checkout()
    desk = (desk or checkout / "work").absolute()
    _refuse_course_folders(desk, checkout)
    if authoring:
        start = next((str(p) for p in ("course/index.ipynb", "README.md") if (checkout / p).exists()), "")
        place = Place(root=checkout, state=desk / ".author", start=start, authoring=True)
    else:
        place = Place(root=desk, state=desk / copies.STATE, start=str(copies.INDEX), authoring=False)
    with _sentences_for_files(desk):
        place.state.mkdir(parents=True, exist_ok=True)
        with _held(place.state) as first:
            if not first:
                return _show_running(place, open_browser=open_browser)
            try:
                return _run(place, checkout, open_browser=open_browser, port=port, host=host)
            except KeyboardInterrupt:
                _say_if_heard("Stopped before it was ready.")
                return 130


def find_checkout() -> Path:
    """The repository that holds the course: the one around the current folder, else the one this package lies in.

    **Raises** `UsageError` if there is none.
    """
    here = Path.cwd()
    for folder in (here, *here.parents, Path(traceonce.__file__).resolve().parents[2]):
        if (folder / "course").is_dir() and (folder / "src" / "traceonce").is_dir():
            return folder
    raise UsageError("There is no course here: run this in a checkout of the Trace Once repository.")


def _run(place: Place, checkout: Path, *, open_browser: bool, port: int | None, host: str) -> int:
    (place.state / _ADDRESS).unlink(missing_ok=True)
    chosen = choose_port(host, port)
    if not place.authoring:
        new = not (place.root / copies.INDEX).exists()
        done = copies.refresh(place.root, copies.sheets(checkout))
        for sentence in account(done, place.root, new=new):
            print(sentence)
    layout.write(place.state / "settings", authoring=place.authoring)
    if port is None and chosen != 8888:
        print(f"Port 8888 is taken; this desk uses {chosen}.")

    def ready(address: str, terminal: TextIO) -> None:
        _write_address(place.state, address)
        opening = open_browser and _has_screen()
        print(
            "Trace Once is ready" + (", and your browser opens it:" if opening else " at this address:"), file=terminal
        )
        print(address, file=terminal)
        print(f"Ctrl-C in this terminal ends it. Your work stays in {_short(place.root)}.", file=terminal)
        if open_browser and not opening:
            print("No screen was found, so no browser was opened.", file=terminal)
        if opening:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    try:
        serve(place, host=host, port=chosen, ready=ready)
    finally:
        (place.state / _ADDRESS).unlink(missing_ok=True)
    _say_if_heard("Stopped. `make learn` opens it again.")
    return 0


def account(done: copies.Refreshed, desk: Path, *, new: bool) -> Sequence[str]:
    """What a refresh did, in sentences for the learner."""
    told = []
    if new:
        told.append(f"Made your desk in {_short(desk)}, with {len(done.made)} files.")
    else:
        told.extend(f"{name} was not on your desk: laid a fresh copy there." for name in done.made)
    if done.renewed:
        told.append(f"The course has changed: renewed what you had not touched ({', '.join(map(str, done.renewed))}).")
    for yours, newest in done.offered:
        told.append(
            f"{yours} has changed in the course and on your desk: yours is kept, the new one is {newest.name} beside it."
        )
    return told


def _refuse_course_folders(desk: Path, checkout: Path) -> None:
    inside = [checkout / name for name in ("course", "labs", "solutions", "src", "tests", "docs")]
    resolved = desk.resolve()
    if resolved == checkout.resolve() or any(resolved.is_relative_to(folder.resolve()) for folder in inside):
        raise UsageError(f"{desk} belongs to the course itself: choose another folder for the desk.")


@contextmanager
def _sentences_for_files(desk: Path) -> Iterator[None]:
    """Turn what the file system refuses into a sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise TraceOnceError(f"There is no space left for {desk}: free some and start again.") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
            what = f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
            raise TraceOnceError(
                f"The desk {desk} cannot be written ({what}): mend that, or choose another folder with DESK=."
            ) from error
        raise


@contextmanager
def _held(state: Path) -> Iterator[bool]:
    """Hold the desk for this process; yields `False` if another one holds it. The system lets go of it for the dead."""
    with open(state / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError as error:
            # Some network file systems have no locks. A desk there is as safe as its owner is careful.
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
                raise
        yield True


def _write_address(state: Path, address: str) -> None:
    part = state / f"{_ADDRESS}.part"
    # The address lets anybody in who can read it.
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump({"address": address, "process": os.getpid()}, file)
    os.replace(part, state / _ADDRESS)


def _show_running(place: Place, *, open_browser: bool) -> int:
    deadline = time.monotonic() + _OTHER_START_SECONDS
    while not (place.state / _ADDRESS).exists():
        if time.monotonic() > deadline:
            raise TraceOnceError(f"Another start of {_short(place.root)} is under way: wait for it, or end it.")
        time.sleep(0.1)
    running = json.loads((place.state / _ADDRESS).read_text())
    print(f"{_short(place.root)} is open already (process {running['process']}), at this address:")
    print(running["address"])
    if open_browser and _has_screen():
        webbrowser.open(running["address"])
    return 0


def _has_screen() -> bool:
    """Whether a browser would have a place to show; without one, the system may start a text browser in the terminal."""
    if sys.platform != "linux" or os.environ.get("BROWSER"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"))


def _short(path: Path) -> str:
    here = Path.cwd()
    return f"{path.relative_to(here)}/" if path.is_relative_to(here) and path != here else str(path)


def _say_if_heard(sentence: str) -> None:
    try:
        print(sentence, flush=True)
    except OSError:
        # The terminal is gone, which is why the desk was stopped; nobody is there to read it.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
