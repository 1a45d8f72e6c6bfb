"""Paths of somebody's machine and network addresses in the files that git tracks."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path

from traceonce.author.course import Course, Finding

ALLOWED = re.compile(r"address-ok: \S")
"""On a line that must hold one (a test that attacks a path): a comment with this and the reason."""

_PATHS = (
    re.compile(r"(?<![\w.~-])/home/[\w.-]+"),
    re.compile(r"(?<![\w.~-])/Users/[\w.-]+"),
    re.compile(r"(?<![\w.~-])/root/[\w.-]+"),
    re.compile(r"(?<![\w.~-])/mnt/[\w.-]+"),
    re.compile(r"\b[A-Z]:\\+Users\\+\w+"),
    re.compile(r"/var/folders/\w+"),
    re.compile(r"(?:/[\w.-]+){2,}/site-packages/"),
    re.compile(r"ipykernel_\d+"),
    re.compile(r"\b0x7f[0-9a-f]{8,}"),
)
# A number with four parts is an address unless it is a version ('==13.1.0.3', 'v1.2.3.4', '-1.2.3.4').
_IPV4 = re.compile(r"(?<![\w.=<>~-])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\w.]*\d)")
_URL_WITH_PORT = re.compile(r"https?://(?!localhost\b|127\.|\{)[\w.-]+:\d+")
_REGISTRY = re.compile(r"\b(?:pypi\.org|pythonhosted\.org|registry\.npmjs\.org|conda\.anaconda\.org|ghcr\.io)\b")
_INDEX_OPTION = re.compile(r"--(?:extra-)?index-url[ =]\S*://|--find-links[ =]\S*://")
_ANY_URL = re.compile(r"\bhttps?://[\w.-]+")
_MEANT_FOR_EXAMPLES = ("127.", "0.0.0.0", "255.255.255.", "192.0.2.", "198.51.100.", "203.0.113.")


def addresses_in_tree(course: Course) -> Iterator[Finding]:
    """One finding for each line of a tracked text file that holds a machine's path or a network address."""
    local = [text for text in (str(course.root), str(Path.home())) if text.count("/") > 1]
    for name in course.tracked_files():
        try:
            text = (course.root / name).read_text("utf-8")
        except UnicodeDecodeError:
            continue  # not text
        host = socket.gethostname() if name.suffix == ".ipynb" else ""
        for number, line in enumerate(text.splitlines(), start=1):
            if ALLOWED.search(line):
                continue
            if path := _machine_path(line, local, host):
                yield Finding(
                    f"{name}:{number}", f"{path!r} is a place on one machine: write a relative path, or none."
                )
            if address := _address(line, in_requirements=name.parts[0] == "requirements"):
                yield Finding(
                    f"{name}:{number}",
                    f"{address!r} is a network address: leave it to the environment; examples use 192.0.2.1 or 127.0.0.1.",
                )


def _machine_path(line: str, local: list[str], host: str) -> str | None:
    for pattern in _PATHS:
        if found := pattern.search(line):
            return str(found[0])
    for text in local:
        if text in line:
            return text
    # Short and general names of machines are words of ordinary text.
    if len(host) > 5 and re.search(r"\d", host) and host in line:
        return host
    return None


def _address(line: str, *, in_requirements: bool) -> str | None:
    for pattern in (_URL_WITH_PORT, _REGISTRY, _INDEX_OPTION, *((_ANY_URL,) if in_requirements else ())):
        if found := pattern.search(line):
            return str(found[0])
    for number in _IPV4.finditer(line):
        if all(int(part) < 256 for part in number.groups()) and not number[0].startswith(_MEANT_FOR_EXAMPLES):
            return str(number[0])
    return None
