"""Messages between the judge and the child: capped in length, a JSON document and binary blobs, nothing executable.

A message is a fixed head (magic, length of the JSON, number of blobs, bytes of all blobs), the lengths of the blobs, the
JSON and the blobs. The receiver checks every length against its cap before it allocates anything.
"""

import itertools
import json
import socket
import struct
import time
from dataclasses import dataclass
from typing import Any

_HEAD = struct.Struct(">4sIIQ")
_LENGTH = struct.Struct(">Q")
_MAGIC = b"TO1\n"
_JSON_CAP = 4 * 2**20
_BLOBS_CAP = 4096


class WireError(Exception):
    """The other side did not keep to the protocol, or is no more."""


class WireClosed(WireError):
    """The other side closed the connection, as a process that ends does."""


class WireSilent(WireError):
    """Nothing complete arrived in time."""


class WireGarbage(WireError):
    """What arrived is no message."""


class WireTooLarge(WireError):
    """A message over the cap."""


@dataclass
class Wire:
    """One end of the connection.

    **Arguments**

    - `end`: a stream socket.
    - `cap`: the most bytes of one message, both ways.
    """

    end: socket.socket
    cap: int

    def send(self, document: Any, blobs: list[bytes], *, deadline: float | None = None) -> None:
        """Send a message by `deadline` (on `time.monotonic`; `None` waits).

        **Raises**: `WireTooLarge` before anything is sent; `WireClosed`, `WireSilent`.
        """
        text = json.dumps(document, separators=(",", ":"), allow_nan=False).encode()
        size = sum(map(len, blobs))
        if len(text) > _JSON_CAP or len(blobs) > _BLOBS_CAP or size + len(text) > self.cap:
            raise WireTooLarge(f"{size + len(text)} bytes in {len(blobs)} arrays")
        head = _HEAD.pack(_MAGIC, len(text), len(blobs), size) + b"".join(_LENGTH.pack(len(blob)) for blob in blobs)
        self._set_timeout(deadline)
        try:
            self.end.sendall(b"".join((head, text, *blobs)))
        except TimeoutError as error:
            raise WireSilent("the other side does not read") from error
        except OSError as error:
            raise WireClosed("the other side is gone") from error

    def receive(self, *, deadline: float | None = None) -> tuple[Any, list[bytes]]:
        """The next whole message, by `deadline` (on `time.monotonic`; `None` waits).

        **Raises**: `WireClosed`, `WireSilent`, `WireGarbage`, `WireTooLarge`.
        """
        magic, text_length, count, size = _HEAD.unpack(self._read(_HEAD.size, deadline))
        if magic != _MAGIC:
            raise WireGarbage("not the head of a message")
        if text_length > _JSON_CAP or count > _BLOBS_CAP or size + text_length > self.cap:
            raise WireTooLarge(f"{size + text_length} bytes in {count} arrays")
        lengths = [length for (length,) in _LENGTH.iter_unpack(self._read(_LENGTH.size * count, deadline))]
        if sum(lengths) != size:
            raise WireGarbage("lengths that do not add up")
        rest = self._read(text_length + size, deadline)
        ends = list(itertools.accumulate(lengths, initial=text_length))
        blobs = [rest[start:end] for start, end in itertools.pairwise(ends)]
        try:
            return json.loads(rest[:text_length], parse_constant=_refuse_constant), blobs
        except (ValueError, RecursionError) as error:
            raise WireGarbage("not JSON") from error

    def has_unread(self) -> bool:
        """Whether something has arrived that nobody asked for."""
        self.end.setblocking(False)
        try:
            return bool(self.end.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        except OSError:
            return False

    def _read(self, length: int, deadline: float | None) -> bytes:
        parts = bytearray()
        while len(parts) < length:
            self._set_timeout(deadline)
            try:
                part = self.end.recv(min(length - len(parts), 2**20))
            except TimeoutError as error:
                raise WireSilent("no answer in time") from error
            except OSError as error:
                raise WireClosed("the other side is gone") from error
            if not part:
                raise WireClosed("the other side is gone")
            parts += part
        return bytes(parts)

    def _set_timeout(self, deadline: float | None) -> None:
        # settimeout(0) would mean "do not block"; a deadline that has passed is a wait of next to nothing.
        self.end.settimeout(None if deadline is None else max(0.001, deadline - time.monotonic()))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
