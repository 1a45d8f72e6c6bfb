"""Where the bytes of an array live: which device holds which block."""

from dataclasses import dataclass
from html import escape
from typing import Any

from traceonce.show import frontend

_WIDTH, _LEFT, _TOP, _ROW = 320, 60, 34, 30
_INK, _FAINT, _GROUNDS = "#1f2328", "#59636e", ("#ffffff", "#eef1f4")
_FONT = 'font-family="system-ui, sans-serif"'
_MOST_DEVICES = 10


@dataclass(frozen=True)
class Block:
    """A part of an array and the devices that hold it.

    **Arguments**

    - `start`, `stop`: its first index and the one after its last, for each axis.
    - `devices`: their places in `jax.devices()`, from 0, in order.
    """

    start: tuple[int, ...]
    stop: tuple[int, ...]
    devices: tuple[int, ...]

    def __str__(self) -> str:
        return "[" + ", ".join(f"{low}:{high}" for low, high in zip(self.start, self.stop, strict=True)) + "]"


@dataclass(frozen=True)
class Layout:
    """How an array lies on devices. `str()` of it is a table; a notebook draws it.

    **Arguments**

    - `shape`, `dtype`: of the whole array.
    - `blocks`: in the order of the array.
    - `bytes`: of the array once; `held` is what all devices together hold of it.
    """

    shape: tuple[int, ...]
    dtype: str
    blocks: tuple[Block, ...]
    bytes: int
    held: int

    def __str__(self) -> str:
        head = f"{self.dtype}{list(self.shape)}: {self.bytes:,} B, held as {self.held:,} B"
        width = max(len(str(block)) for block in self.blocks)
        return "\n".join([head, *(f"  {block!s:{width}}  {_devices(block)}" for block in self.blocks)])

    def __repr__(self) -> str:
        return str(self)

    def svg(self) -> str | None:
        """The picture, or None for an array of more than two axes."""
        return _svg(self) if len(self.shape) <= 2 else None

    def _ipython_display_(self) -> None:
        if frontend.kernel_shell() is None:
            print(self)
        else:
            frontend.publish(str(self), svg=self.svg())


def layout(array: Any) -> Layout:
    """Which device holds which block of a JAX array. As the last line of a cell it is drawn; nothing is moved.

    Devices are numbered by their places in `jax.devices()`. Raises `TypeError` for what is no JAX array with values.

    ```python
    layout(jax.device_put(x, NamedSharding(mesh, P("rows"))))
    ```
    """
    import jax

    if not isinstance(array, jax.Array) or isinstance(array, jax.core.Tracer):
        raise TypeError(f"layout() takes a JAX array, not {type(array).__name__}.")
    place = {device: number for number, device in enumerate(jax.devices())}
    held: dict[tuple[tuple[int, int], ...], list[int]] = {}
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        parts = tuple(part.indices(size)[:2] for part, size in zip(index, array.shape, strict=True))
        held.setdefault(parts, []).append(place[device])
    blocks = tuple(
        Block(tuple(low for low, _ in parts), tuple(high for _, high in parts), tuple(sorted(devices)))
        for parts, devices in sorted(held.items())
    )
    each = array.dtype.itemsize
    copies = sum(len(block.devices) * _size(block) for block in blocks)
    return Layout(tuple(array.shape), str(array.dtype), blocks, array.size * each, copies * each)


def _size(block: Block) -> int:
    size = 1
    for low, high in zip(block.start, block.stop, strict=True):
        size *= high - low
    return size


def _devices(block: Block) -> str:
    numbers = block.devices
    if len(numbers) == 1:
        return f"device {numbers[0]}"
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"devices {numbers[0]} to {numbers[-1]}"
    shown = " ".join(map(str, numbers[:_MOST_DEVICES]))
    return f"devices {shown}{' ...' * (len(numbers) > _MOST_DEVICES)}"


def _svg(shown: Layout) -> str:
    """Rows downwards, columns to the right; one axis alone is a column."""
    rows, columns = (*shown.shape, 1, 1)[:2] if shown.shape else (1, 1)
    bands = len({block.start[:1] for block in shown.blocks})
    height = max(_ROW * bands, 2 * _ROW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 16} {_TOP + height + 16}" '
        f'width="{_LEFT + _WIDTH + 16}" height="{_TOP + height + 16}" role="img">',
        f"<title>Which device holds which block</title><desc>{escape(str(shown))}</desc>",
        f'<rect width="100%" height="100%" fill="{_GROUNDS[0]}"/>',
        _text(_LEFT, 20, str(shown).splitlines()[0], 13, _INK, "start"),
    ]
    for number, block in enumerate(shown.blocks):
        (top, left), (bottom, right) = (*block.start, 0, 0)[:2], (*block.stop, 1, 1)[:2]
        x, wide = _LEFT + _WIDTH * left / columns, _WIDTH * (right - left) / columns
        y, high = _TOP + height * top / rows, height * (bottom - top) / rows
        parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" fill="{_GROUNDS[number % 2]}" stroke="{_INK}"/>'
        )
        words = _devices(block) if wide > 90 else ",".join(map(str, block.devices))
        parts.append(_text(x + wide / 2, y + high / 2 + 4, words, 12, _INK, "middle"))
        if shown.shape and left == 0:
            parts.append(_text(_LEFT - 6, y + high / 2 + 4, f"{top}:{bottom}", 11, _FAINT, "end"))
    return "".join((*parts, "</svg>"))


def _text(x: float, y: float, words: str, size: int, fill: str, anchor: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" {_FONT}>{escape(words)}</text>'
