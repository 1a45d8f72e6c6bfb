import dataclasses
import json
import math
import socket
import struct
import threading
import time
from collections import namedtuple

import ml_dtypes
import numpy as np
import pytest

from traceonce.grade.hidden import same_tree
from traceonce.grade.values import Decoder, Deleted, Encoder, Host, Key, Node, NotAValue, Opaque, Ref, Tracer
from traceonce.grade.wire import Wire, WireClosed, WireGarbage, WireSilent, WireTooLarge


def there_and_back(value):
    encoder = Encoder()
    form = json.loads(json.dumps(encoder.encode(value), allow_nan=False))
    return Decoder(encoder.blobs).decode(form)


@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, 2**63, -(10**40), 1.5, math.inf, -math.inf, "text", "\U0001f600", 1 + 2j, b"bytes",
        (), [], {}, (1, [2, (3,)], {"a": None, 1: (2,), (1, 2): "b"}), Key("threefry2x32", np.array([1, 2], "uint32")),
        Deleted((2, 3)), Tracer("JaxprTracer"), Ref("loss"), Node("P", {"w": 1.0}),
    ],
    ids=repr,
)  # fmt: skip
def test_values_come_back_as_they_were(value):
    back = there_and_back(value)
    assert type(back) is type(value)
    assert back == value


@pytest.mark.parametrize(
    "array",
    [
        np.float32([1, np.nan]), np.arange(6).reshape(2, 3).T, np.zeros((0, 3), "int8"), np.array(2.5, "float32"),
        np.array(["a", "bc"]), np.array([True]), np.array([1j]), np.arange(3, dtype=">i4"),
        np.arange(3).astype(ml_dtypes.bfloat16), np.arange(3).astype(ml_dtypes.float8_e4m3fn),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)  # fmt: skip
def test_arrays_come_back_with_shape_and_dtype(array):
    back = there_and_back(array)
    assert isinstance(back, np.ndarray)
    assert (back.shape, back.dtype) == (array.shape, array.dtype)
    assert back.tobytes() == array.tobytes()


def test_a_numpy_scalar_is_told_from_an_array_and_from_a_python_number():
    assert type(there_and_back(np.float32(2))) is np.float32
    assert type(there_and_back(np.array(2, "float32"))) is np.ndarray
    assert type(there_and_back(2.0)) is float


def test_nan_comes_back():
    assert math.isnan(there_and_back(math.nan))


def test_named_things_come_back_as_nodes_with_their_name():
    State = namedtuple("State", "count mu")
    Params = dataclasses.make_dataclass("Params", ["w", "b"])
    node = there_and_back((State(1, {"w": 2.0}), Params(np.ones(2), None)))
    assert [part.name for part in node] == ["State", "Params"]
    assert node[0].mu == {"w": 2.0}
    assert node[1].b is None
    with pytest.raises(AttributeError, match="no field 'c'"):
        node[1].c  # noqa: B018


def test_a_field_that_numpy_would_ask_for_is_no_field():
    Pointer = dataclasses.make_dataclass("Pointer", ["__array_interface__", "w"])
    node = there_and_back(Pointer({"data": (8, False), "shape": (4,), "typestr": "<f4", "version": 3}, 1))
    assert node.fields == {"w": 1}
    direct = Node(
        "Pointer", {"__array_interface__": {"data": (8, False), "shape": (4,), "typestr": "<f4", "version": 3}}
    )
    assert np.asarray(direct).dtype == object
    with pytest.raises(AttributeError):
        direct.__array_interface__  # noqa: B018


def test_a_blob_is_one_array_where_that_is_asked_for():
    form = {"t": "list", "items": [{"t": "array", "b": 0, "dtype": "|u1", "shape": [8]}] * 2}
    assert len(Decoder([b"x" * 8]).decode(form)) == 2
    with pytest.raises(NotAValue, match="two arrays of one blob"):
        Decoder([b"x" * 8], taken=set()).decode(form)


def test_what_has_no_form_becomes_opaque_and_equals_nothing():
    assert there_and_back({1, 2}) == Opaque("set")
    assert there_and_back(np.array([object()])) == Opaque("ndarray of object")
    assert not same_tree(there_and_back(len), there_and_back(len))


def test_a_host_array_is_marked_for_the_child():
    encoder = Encoder()
    form = encoder.encode(Host(np.ones(2)))
    decoder = Decoder(encoder.blobs, array=lambda _: "on the device", special=lambda found: found.value)
    assert isinstance(decoder.decode(form), np.ndarray)


def test_a_value_without_end_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="nested too deeply"):
        Encoder().encode(endless)


LIES = {
    "object array": ("|O8", [1], 8),
    "more than there is": ("<f8", [10**15], 8),
    "less than there is": ("<f8", [1], 16),
    "negative": ("<f8", [-1], 8),
    "two negatives": ("<f8", [-1, -1], 8),
    "elements of no bytes": ("|S0", [10**15], 0),
    "too large for its index": ("<f8", [0, 10**15, 10**15], 0),
    "true for a length": ("<f8", [True], 8),
    "text for a shape": ("<f8", "1", 8),
    "no shape": ("<f8", None, 8),
    "too many axes": ("<f8", [1] * 100, 8),
    "structured": ([["a", "<f8"]], [1], 8),
    "several fields": ("<f8,<f8", [1], 16),
    "dates": ("<M8", [1], 8),
    "unknown": ("<f3", [1], 3),
    "no type": (None, [1], 8),
    "a class": ("generic", [1], 8),
    "an empty text for a shape": ("|b1", "", 1),
    "a bool that is neither": ("|b1", [8], 8),
    "characters that are none": ("<U1", [2], 8),
    "characters the other way round": (">U1", [2], 8),
}


@pytest.mark.parametrize("lie", LIES)
def test_an_array_that_lies_is_refused(lie):
    dtype, shape, size = LIES[lie]
    with pytest.raises(NotAValue):
        Decoder([b"x" * size]).decode({"t": "array", "b": 0, "dtype": dtype, "shape": shape})


ARRAY = {"t": "array", "dtype": "<f8", "shape": [1]}


@pytest.mark.parametrize(
    "form",
    [
        [], {}, {"t": "what"}, ARRAY | {"b": 5}, ARRAY | {"b": True}, ARRAY | {"b": -1}, ARRAY, {"t": "array", "b": 0},
        {"t": "dict", "items": [[{"t": "list", "items": []}, 1]]}, {"t": "dict", "items": 3}, {"t": "float", "v": "1e5"},
        {"t": "int", "v": "rubbish"}, {"t": "deleted", "shape": [-5]}, {"t": "deleted", "shape": [1e999]},
        {"t": "complex", "v": [{"v": 10**400}, 0.0]}, {"t": "node", "name": "x", "fields": [["__array_interface__", 1]]},
        {"t": "node", "name": "x"}, {"t": ["array"]}, {"t": "tuple", "items": [[1]]},
    ],
    ids=repr,
)  # fmt: skip
def test_a_form_that_stands_for_nothing_is_refused(form):
    with pytest.raises(NotAValue):
        Decoder([]).decode(form)


def test_a_deep_form_is_refused_without_exhausting_the_stack():
    form = 1
    for _ in range(5000):
        form = {"t": "list", "items": [form]}
    with pytest.raises(NotAValue):
        Decoder([]).decode(form)


# The wire -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    with left, right:
        yield Wire(left, 2**20), right


def soon(seconds=0.2):
    return time.monotonic() + seconds


def test_a_message_arrives_whole(ends):
    ours, theirs = ends
    blob = bytes(range(256)) * 1000
    sender = threading.Thread(target=Wire(theirs, 2**20).send, args=({"a": [1]}, [blob, b""]))
    sender.start()
    assert ours.receive(deadline=soon(10)) == ({"a": [1]}, [blob, b""])
    sender.join()


HEAD = struct.Struct(">4sIIQ")


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", WireGarbage),
        (HEAD.pack(b"TO1\n", 2**31, 0, 0), WireTooLarge),
        (HEAD.pack(b"TO1\n", 2, 0, 2**40), WireTooLarge),
        (HEAD.pack(b"TO1\n", 2, 2**31, 0), WireTooLarge),
        (HEAD.pack(b"TO1\n", 2, 1, 8) + struct.pack(">Q", 2**62), WireGarbage),
        (HEAD.pack(b"TO1\n", 5, 0, 0) + b"{not}", WireGarbage),
        (HEAD.pack(b"TO1\n", 3, 0, 0) + b"NaN", WireGarbage),
        (HEAD.pack(b"TO1\n", 100_000, 0, 0) + b"[" * 100_000, WireGarbage),
        (HEAD.pack(b"TO1\n", 5, 0, 0) + b"12", WireSilent),
        (b"TO", WireSilent),
    ],
)
def test_what_is_no_message_is_refused(ends, sent, error):
    ours, theirs = ends
    theirs.sendall(sent)
    with pytest.raises(error):
        ours.receive(deadline=soon())


def test_the_end_of_the_other_side_is_told_from_silence(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(WireClosed):
        ours.receive(deadline=soon())


def test_bytes_that_drip_do_not_extend_the_deadline(ends):
    ours, theirs = ends
    stop = threading.Event()

    def drip():
        while not stop.wait(0.02):
            theirs.send(b"T" if not theirs.send(b"") else b"O")

    dripping = threading.Thread(target=drip)
    dripping.start()
    with pytest.raises((WireSilent, WireGarbage)):
        ours.receive(deadline=soon())
    stop.set()
    dripping.join()


def test_what_nobody_asked_for_is_seen(ends):
    ours, theirs = ends
    assert not ours.has_unread()
    theirs.send(b"x")
    assert ours.has_unread()


def test_too_much_is_refused_before_any_of_it_is_sent(ends):
    ours, theirs = ends
    with pytest.raises(WireTooLarge):
        ours.send({}, [b"x" * 2**20])
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)


# Comparing ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ({"w": np.ones(2)}, {"w": np.ones(2)}, True),
        ({"w": np.ones(2)}, {"w": np.ones(2), "b": 1}, False),
        (np.float32([1, np.nan]), np.float32([1, np.nan]), True),
        (np.ones((1, 2)), np.ones((2, 1)), False),
        (np.ones(2), np.ones(2) * 1.1, False),
        (2.0, np.array(2.0), True),
        (2, 2.0, True),
        ((1, 2), [1, 2], False),
        (None, 0, False),
        ("a", "a", True),
        (np.arange(3).astype(ml_dtypes.bfloat16), np.arange(3), True),
        (True, np.bool_(True), True),
    ],
)
def test_same_tree(left, right, same):
    assert same_tree(left, right) is same
    assert same_tree(right, left) is same


def test_same_tree_with_a_tolerance():
    assert same_tree([np.float32([1.0])], [np.float32([1.001])], atol=0.01)
    assert not same_tree([np.float32([1.0])], [np.float32([1.1])], atol=0.01)
    assert same_tree([np.nan], [np.nan], rtol=1e-3)
    assert same_tree(np.arange(3).astype(ml_dtypes.bfloat16), np.arange(3), rtol=1e-2)
