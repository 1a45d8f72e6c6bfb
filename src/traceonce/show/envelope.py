"""A series of any length in a bounded number of points: the lowest and the highest of each stretch."""

Point = tuple[float, ...]
"""x, y, and whatever else belongs to it. The y decides what is low and high."""

Bucket = tuple[Point, Point]


class Envelope:
    """Keeps at most `2 * capacity` points of a series that grows.

    While there are few points, each is kept. Then neighbours share a bucket that keeps the lowest and the highest, so
    that a single slow call among a million is still drawn. Adding a point costs the same at any length.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.width = 1
        self.count = 0
        self.buckets: dict[int, Bucket] = {}
        self._changed: set[int] = set()
        self._all_changed = True

    def add(self, point: Point) -> None:
        """Append one point."""
        index = self.count // self.width
        self.count += 1
        held = self.buckets.get(index)
        self.buckets[index] = (point, point) if held is None else _widened(held, point, point)
        self._changed.add(index)
        if len(self.buckets) > self.capacity:
            self._halve()

    def points(self) -> list[Point]:
        """The points kept, in the order in which they came."""
        return [point for bucket in self.buckets.values() for point in _in_order(bucket)]

    def state(self) -> dict[str, object]:
        """Everything, for the saved picture."""
        return self._message(range(len(self.buckets)), whole=True)

    def changes(self) -> dict[str, object]:
        """What changed since the last `changes`; `whole` says that the receiver must forget what it had."""
        whole, self._all_changed = self._all_changed, False
        indices = range(len(self.buckets)) if whole else sorted(self._changed)
        self._changed.clear()
        return self._message(indices, whole=whole)

    def _message(self, indices: "range | list[int]", *, whole: bool) -> dict[str, object]:
        buckets = [[index, *_in_order(self.buckets[index])] for index in indices]
        return {"width": self.width, "whole": whole, "buckets": buckets}

    def _halve(self) -> None:
        merged: dict[int, Bucket] = {}
        for index, (low, high) in self.buckets.items():
            held = merged.get(index // 2)
            merged[index // 2] = (low, high) if held is None else _widened(held, low, high)
        self.buckets = merged
        self.width *= 2
        self._all_changed = True


def _widened(bucket: Bucket, low: Point, high: Point) -> Bucket:
    return (low if low[1] < bucket[0][1] else bucket[0], high if high[1] > bucket[1][1] else bucket[1])


def _in_order(bucket: Bucket) -> tuple[Point, ...]:
    low, high = bucket
    if low == high:
        return (low,)
    return (low, high) if low[0] <= high[0] else (high, low)
