"""Commands on a machine where everybody may read Python, as it is on most: this one's may lie in somebody's closed home folder.

Root can show it that way in a mount namespace of the command's own; nothing outside changes.
"""

import os
import shlex
import stat
import sys
from pathlib import Path

from traceonce.sandbox.root import environment_contents

CHECKOUT = Path(__file__).resolve().parents[2]
ORDINARY = 1234


def _closed(path: Path) -> Path | None:
    """The first folder on the way to a path that not everybody may enter."""
    for folder in reversed(path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            return folder
    return None


def command(arguments: list[str], *, hold: Path, ordinary: bool = False) -> list[str]:
    """The command with the environment readable by everybody, as root or as an `ordinary` user; as it is, where this is no root.

    `hold` is an empty folder for mounts.
    """
    if os.geteuid() != 0:
        return arguments
    wanted = {Path(sys.base_prefix), Path(sys.prefix), CHECKOUT, *environment_contents().shown}
    behind = sorted((path, closed) for path in wanted if (closed := _closed(path)))
    lines = ["set -e"]
    held = {}
    for number, (path, closed) in enumerate(behind):
        place = hold / str(number)
        held.setdefault(closed, []).append((path, place))
        lines.append(
            f"mkdir -p {shlex.quote(str(place))} && mount --bind {shlex.quote(str(path))} {shlex.quote(str(place))}"
        )
    for closed, paths in held.items():
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(closed))}")
        for path, place in paths:
            lines.append(
                f"mkdir -p {shlex.quote(str(path))} && mount --bind {shlex.quote(str(place))} {shlex.quote(str(path))}"
            )
    lines.append('exec "$@"')
    user = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"] if ordinary else []
    return ["unshare", "--mount", "sh", "-c", "\n".join(lines), "sh", *user, *arguments]
