"""Paths of somebody's machine and network addresses in the files that git tracks."""

import ipaddress
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from traceonce.author.course import Course, Finding

ALLOWED = re.compile(r"address-ok: \S")
"""On a line that must hold one (a test that attacks a path): a comment with this and the reason."""
_ESCAPE = " (where the line must hold it, end it with the comment 'address-ok: why')"

_PATHS = (
    # Names that stand for anybody, and Homebrew's fixed place on Linux, are no particular machine's.
    re.compile(r"(?<![\w.~-])/home/(?!(?:learner|student|user|you|me|jovyan|linuxbrew)\b)[\w.-]+"),
    re.compile(r"(?<![\w.~-])/Users/(?!(?:learner|student|user|you|me)\b)[\w.-]+"),
    re.compile(r"(?<![\w.~-])/[r]oot/[\w.-]+"),
    re.compile(r"(?<![\w.~-])/mnt/[\w.-]+"),
    re.compile(r"\b[A-Z]:\\+Users\\+\w+"),
    re.compile(r"/var/folders/\w+"),
    re.compile(r"(?:/[\w.-]+){2,}/site-packages/"),
    re.compile(r"ipykernel_\d+"),
    re.compile(r"\b0x7f[0-9a-f]{8,}"),
)
# Four numbers can be a version. They are an address in the private ranges, and where something says so: '//', '@', a port.
_IPV4 = re.compile(r"(?P<before>//|@)?(?<![\w.=<>~-])(?P<parts>\d{1,3}(?:\.\d{1,3}){3})(?!\.?\w)(?P<port>:\d+)?")
_URL_WITH_PORT = re.compile(r"https?://(?!localhost\b|127\.|\{)[\w.-]+:\d+")
_REGISTRY = re.compile(r"\b(?:pypi\.org|python[h]osted\.org|registry\.npmjs\.org|conda\.anaconda\.org|ghcr\.io)\b")
_INDEX_OPTION = re.compile(r"--(?:extra-)?index-url[ =]\S*://|--find-links[ =]\S*://")
_ANY_URL = re.compile(r"\bhttps?://[\w.-]+")
_EXAMPLES = [ipaddress.IPv4Network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]
_RESOLVERS = frozenset({"8.8.8.8", "8.8.4.4", "1.1.1.1", "9.9.9.9"})  # address-ok: the public ones that people paste


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
                    f"{name}:{number}", f"{path!r} is a place on one machine: write a relative path, or none{_ESCAPE}."
                )
            if address := _address(line, in_requirements=name.parts[0] == "requirements"):
                yield Finding(
                    f"{name}:{number}",
                    f"{address!r} is a network address: leave it to the environment; examples use 192.0.2.1 or 127.0.0.1{_ESCAPE}.",
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
        try:
            address = ipaddress.IPv4Address(number["parts"])
        except ValueError:
            continue  # a part over 255
        said = number["before"] or number["port"] or number["parts"] in _RESOLVERS
        if (said or _is_local(address)) and not _for_examples(address):
            return number["parts"]
    return None


def _is_local(address: ipaddress.IPv4Address) -> bool:
    # 0.x is a private range by the book, and a version wherever it is written.
    return (address.is_private or address.is_link_local) and address.packed[0] != 0


def _for_examples(address: ipaddress.IPv4Address) -> bool:
    return address.is_loopback or address.is_unspecified or any(address in network for network in _EXAMPLES)
