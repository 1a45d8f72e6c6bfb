"""What a sandboxed submission may use."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Limits:
    """The limits of one sandbox.

    **Arguments**

    - `seconds`: wall time in total; the processor time is limited to the same number (plus two).
    - `call_seconds`: wall time of one cell or of one call.
    - `memory_mb`: MB that all processes of the sandbox together may hold, shared pages counted by their share. A single
      process gets that much private memory, and 128 MB, beyond what it has before student code runs, and that much address space, and 256 MB.
    - `processes`: processes and threads together. XLA alone starts about eight.
    - `file_mb`: size of one file.
    - `tmp_mb`, `shm_mb`: size of ``/tmp`` and of ``/dev/shm``, which are all that can be written to.
    - `open_files`: descriptors of a process.
    - `message_mb`: size of one message from the sandbox.
    """

    seconds: float = 60.0
    call_seconds: float = 10.0
    memory_mb: int = 2048
    processes: int = 64
    file_mb: int = 32
    tmp_mb: int = 64
    shm_mb: int = 16
    open_files: int = 256
    message_mb: int = 64

    @classmethod
    def for_submission(cls, *, seconds: float, memory_mb: int) -> "Limits":
        """Limits from the two that a teacher sets; one call may take a sixth of the whole time, at least 1 s."""
        return cls(seconds=seconds, call_seconds=max(1.0, seconds / 6), memory_mb=memory_mb)

    def to_json(self) -> dict[str, Any]:
        """As a JSON object, for `from_json`."""
        return asdict(self)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Limits":
        """From `to_json`'s object."""
        return cls(**fields)
