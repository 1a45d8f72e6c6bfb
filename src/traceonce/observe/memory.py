"""How much memory the process and its arrays hold, sampled without disturbing JAX.

Three things that are not each other: what the operating system has given to the process (RSS), what JAX's live arrays
occupy (counted once for each buffer, because two array objects may share one), and what a device's allocator says.
"""

from __future__ import annotations

import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax

from traceonce.errors import TraceOnceError
from traceonce.observe.calls import CallLog
from traceonce.observe.monitor import MONITOR, RawEvent, RunningStage, unseen

KEPT_SAMPLES = 100_000


@dataclass(frozen=True, slots=True)
class LiveBytes:
    """What the live arrays of the process occupy.

    - `arrays`: array objects. `buffers`: distinct pieces of memory behind them.
    - `bytes`: the sum over buffers. `listed`: the sum over array objects, which counts a shared buffer again.
    """

    arrays: int
    buffers: int
    bytes: int
    listed: int


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What the allocator of one device says, in bytes; `None` for a figure that it does not give."""

    device: str
    in_use: int | None
    peak: int | None
    limit: int | None


@dataclass(frozen=True, slots=True)
class MemorySample:
    """Memory at one moment.

    - `at`: seconds on the clock of `time.perf_counter`.
    - `rss`: bytes that the process holds in RAM.
    - `live`, `devices`, `executables`: read on the main thread at call boundaries; `None` in the samples between.
    """

    at: float
    rss: int
    live: LiveBytes | None = None
    devices: tuple[DeviceMemory, ...] | None = None
    executables: int | None = None


def rss() -> int:
    """Return the bytes that this process holds in RAM. Calls no JAX, so any thread may ask.

    **Raises** `TraceOnceError` where the platform gives no figure.
    """
    try:
        import psutil
    except ImportError:
        return _rss_of_linux()
    return int(psutil.Process().memory_info().rss)


def _rss_of_linux() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            pages = int(statm.read().split()[1])
    except OSError as error:
        raise TraceOnceError(
            "This platform does not say how much memory a process holds: install psutil (pip install psutil)."
        ) from error
    import resource

    return pages * resource.getpagesize()


def live_bytes() -> LiveBytes:
    """Count the bytes of all live arrays, each buffer once. Call it on the main thread: it asks JAX."""
    arrays = listed = 0
    buffers: dict[tuple[str, int], int] = {}
    for array in jax.live_arrays():
        if array.is_deleted():
            continue
        arrays += 1
        listed += array.nbytes
        buffers.update(buffers_of(array))
    return LiveBytes(arrays, len(buffers), sum(buffers.values()), listed)


def buffers_of(array: jax.Array) -> dict[tuple[str, int], int]:
    """Return the buffers of an array in this process: (device, address) -> bytes."""
    if jax.dtypes.issubdtype(array.dtype, jax.dtypes.prng_key):
        array = jax.random.key_data(array)
    devices = array.devices()
    if len(devices) == 1:
        return {(str(next(iter(devices))), array.unsafe_buffer_pointer()): array.nbytes}
    shards = [shard for shard in array.addressable_shards if shard.data is not None]
    return {(str(shard.device), shard.data.unsafe_buffer_pointer()): shard.data.nbytes for shard in shards}


def device_memory() -> tuple[DeviceMemory, ...]:
    """Return what each local device's allocator says; empty on backends without one, such as the CPU."""
    found = []
    for device in jax.local_devices():
        stats = device.memory_stats()
        if stats:
            found.append(
                DeviceMemory(
                    str(device), stats.get("bytes_in_use"), stats.get("peak_bytes_in_use"), stats.get("bytes_limit")
                )
            )
    return tuple(found)


def executables() -> int | None:
    """Return how many compiled programs the backend keeps, or `None` where this version of JAX does not say."""
    from jax.extend import backend

    live = getattr(backend.get_backend(), "live_executables", None)
    return None if live is None else len(live())


def sample() -> MemorySample:
    """Take a full sample now. Call it on the main thread."""
    with unseen():
        return MemorySample(perf_counter(), rss(), live_bytes(), device_memory(), executables())


class MemoryWatch:
    """Samples memory while its block is open: RSS from a thread that calls no JAX, the rest at call boundaries.

    Made by `watch_memory()`.
    """

    def __init__(self, rate: float) -> None:
        self.samples: list[MemorySample] = []
        self._interval = 1 / rate
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._subscribers: list[Callable[[MemorySample], object]] = []
        self._closers: list[Callable[[], object]] = []
        self._told = 0
        self._next_full = 0.0
        self.closed = False

    def __enter__(self) -> MemoryWatch:
        if self._thread is not None:
            raise TraceOnceError(
                "This record was already used for a block: open a new one with watch_memory().", exit_code=2
            )
        self.samples.append(sample())
        MONITOR.open_block(self)
        MONITOR.count_subscribers(1)  # call boundaries are wanted also where nothing compiles
        self._thread = threading.Thread(target=self._run, name="traceonce-memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: types.TracebackType | None
    ) -> None:
        self._stop.set()
        MONITOR.close_block(self)
        MONITOR.count_subscribers(-1)
        if self._thread is not None:
            self._thread.join()
        self.samples.append(sample())
        self.closed = True
        self._tell()
        while self._closers:
            self._guarded(self._closers.pop(0))

    @property
    def peak_rss(self) -> int:
        """The highest RSS among the samples, in bytes. A short spike between two samples is not in it."""
        return max(one.rss for one in self.samples)

    def subscribe(self, callback: Callable[[MemorySample], object]) -> Callable[[], None]:
        """Call `callback(sample)` for each sample, on the main thread at call boundaries. Returns a function that ends this.

        A callback that raises is dropped with a warning, so that a broken chart never breaks the computation.
        """
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    def when_closed(self, callback: Callable[[], object]) -> None:
        """Call `callback()` once, after subscribers got the last sample: when the block is left, or now if it was."""
        if self.closed:
            self._guarded(callback)
        else:
            self._closers.append(callback)

    def _run(self) -> None:
        while not self._stop.wait(self._interval):
            if len(self.samples) < KEPT_SAMPLES:
                self.samples.append(MemorySample(perf_counter(), rss()))

    # -- what the monitor tells

    def deliver(self) -> None:
        """At a call boundary: take a full sample, at most at the rate asked for and for at most 1 % of the time."""
        now = perf_counter()
        if now >= self._next_full and len(self.samples) < KEPT_SAMPLES:
            self.samples.append(sample())
            cost = perf_counter() - now
            self._next_full = now + max(self._interval, 100 * cost)
        self._tell()

    def _tell(self) -> None:
        while self._told < len(self.samples):
            one = self.samples[self._told]
            self._told += 1
            for callback in tuple(self._subscribers):
                self._guarded(callback, one)

    def _guarded(self, callback: Callable[..., object], *sample: MemorySample) -> None:
        try:
            callback(*sample)
        except Exception as error:  # noqa: BLE001 - the error belongs to the callback, the call to the user
            if callback in self._subscribers:
                self._subscribers.remove(callback)
            warnings.warn(
                f"A subscriber of a watch_memory() raised {error!r} and was dropped.", RuntimeWarning, stacklevel=2
            )

    def take_stage(self, running: RunningStage, raw: RawEvent) -> None:
        """Nothing to note: the boundary that follows is what counts."""

    def take_call(self, raw: RawEvent) -> None:
        """Nothing to note: the boundary that follows is what counts."""

    def take_inner_call(self, raw: RawEvent) -> None:
        """Nothing to note: the boundary that follows is what counts."""

    def add_log(self, log: CallLog) -> None:
        """Nothing to note: calls are not counted here."""

    def __str__(self) -> str:
        if not self.samples:
            return "no samples yet"
        first, last = self.samples[0], self.samples[-1]
        parts = [
            f"{len(self.samples)} samples",
            f"RSS {written(first.rss)} -> {written(last.rss)}, peak {written(self.peak_rss)}",
        ]
        if first.live is not None and last.live is not None:
            parts.append(f"live arrays {written(first.live.bytes)} -> {written(last.live.bytes)}")
        if first.executables is not None and last.executables is not None:
            parts.append(f"executables {first.executables} -> {last.executables}")
        return "; ".join(parts)


def watch_memory(rate: float = 10.0) -> MemoryWatch:
    """Open a block that samples memory.

    **Arguments**

    - `rate`: samples a second, at most 1000.

    **Raises** `TraceOnceError` for a rate that is not between 0 and 1000.
    """
    if not 0 < rate <= 1000:
        raise TraceOnceError(
            f"watch_memory() takes samples a second, above 0 and at most 1000, not {rate}.", exit_code=2
        )
    return MemoryWatch(rate)


def written(size: float) -> str:
    """Write a number of bytes for a reader: `135.0 MB`."""
    value: Any = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
