"""What student code tries: solution cells that give a wrong `double` and print what they got hold of."""

from traceonce.grade.breakouts import BREAK_OUT, OUTLIVE, WRITE_EVERYWHERE

# Written so that neither stands in the text of an attack: it would find itself.
SEED = "SEEDMARK" + "0123456789abcdef" * 2

WRONG = "\n\ndef double(x):\n    return 3 * x\n"

READ_ALL_FILES = r"""
import os, re
pattern = re.compile(rb"HIDDEN[-]CANARY|SEED[M]ARK|SOLUTION\n    return 2 [*] x")
count = 0
for folder, names, files in os.walk("/"):
    names[:] = [name for name in names if name not in ("proc", "site-packages", "lib", "lib64", "python3")]
    for name in files:
        try:
            text = open(os.path.join(folder, name), "rb").read(2_000_000)
        except OSError:
            continue
        count += 1
        if pattern.search(text):
            print("FOUND", folder, name)
print("read", count)
import traceonce, sys
print("source", os.path.dirname(os.path.dirname(traceonce.__file__)))
for path in (CANARY_FILE, SEED_FILE, OUT, os.path.expanduser("~/.ssh"), "/etc/shadow", "/etc/hostname", "/home", "/var", "/bin/sh"):
    print("EXISTS" if os.path.exists(path) else "absent", path)
"""

READ_ALL_MEMORY = r"""
import re
pattern = re.compile(rb"HIDDEN[-]CANARY|SEED[M]ARK[0-9a-f]{32}|Doubles an[ ]array|Keep the shape [o]f what")
regions = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
    for line in maps.readlines():
        span, rights = line.split()[:2]
        start, end = (int(part, 16) for part in span.split("-"))
        if "rw" not in rights or end - start > 2**28:
            continue
        try:
            memory.seek(start)
            if pattern.search(memory.read(end - start)):
                print("FOUND", line)
            regions += 1
        except (OSError, OverflowError, ValueError):
            pass
print("read", regions)
"""

LOOK_AROUND = r"""
import os
import tempfile
try:
    print("temporary", tempfile.gettempdir())
except FileNotFoundError:
    print("temporary none")  # where nothing at all can be written
print("pids", sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
print("fds", sorted(int(name) for name in os.listdir("/proc/self/fd")))
print("ids", os.getuid(), os.getgid(), os.geteuid(), os.getgroups())
print("env", sorted(os.environ))
print("root", sorted(os.listdir("/")))
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
print("caps", status["CapPrm"].strip(), status["CapEff"].strip(), status["CapBnd"].strip(), status["CapInh"].strip())
print("privs", status["NoNewPrivs"].strip(), status["Seccomp"].strip())
for path in ("/proc/1/environ", "/proc/1/mem", "/proc/1/root", "/proc/1/fd"):
    try:
        os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(10)
        print("OPENED", path)
    except OSError as error:
        print("refused", path)
"""

FILL_DISKS = r"""
import os
for folder in ("/scratch", "/dev/shm", "/tmp"):
    size = files = 0
    try:
        for number in range(100_000):
            with open(f"{folder}/{number}", "wb") as file:
                file.write(b"x" * 2**20)
            size += 1
    except OSError as error:
        print(folder, size, "MB", error.errno)
    for name in os.listdir(folder):
        if os.path.isfile(f"{folder}/{name}"):
            os.unlink(f"{folder}/{name}")
    try:
        for number in range(100_000):
            os.mkdir(f"{folder}/d{number}")
            files += 1
    except OSError as error:
        print(folder, files, "inodes", error.errno)
try:
    with open("/scratch/big", "wb") as file:
        file.seek(2**40)
        file.write(b"x")
    print("WRITTEN")
except OSError as error:
    print("refused", error.errno)
"""

SPEAK_OUT_OF_TURN = r"""
import os, json, struct
reply = json.dumps({"nonce": "00", "ok": {"value": 1}}).encode()
frame = struct.pack(">4sIIQ", b"TO1\n", len(reply), 0, 0) + reply

def double(x):
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, frame)
        except OSError:
            pass
    return 2 * x
"""

# The wire's own message and the supervisor's own line, on the streams that anybody may write to.
FORGED_OUTPUT = r"""
import os, json, struct, sys
reply = json.dumps({"nonce": "00", "ok": {"value": 1}}).encode()
frame = struct.pack(">4sIIQ", b"TO1\n", len(reply), 0, 0) + reply
line = json.dumps({"result": {"id": "forged_output", "status": "passed", "asserts": [], "score": 5}}) + "\n"

def forge():
    for descriptor in (1, 2):
        os.write(descriptor, frame + b"\n" + line.encode())
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        stream.write(line)
        stream.flush()

forge()

def double(x):
    forge()
    return 3 * x
"""

GARBAGE = r"""
import os

def double(x):
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, b"GARBAGE" * 10_000)
        except OSError:
            pass
    return 2 * x
"""

OVERSIZED = r"""
import os, struct

def double(x):
    for descriptor in range(3, 20):
        try:
            os.write(descriptor, struct.pack(">4sIIQ", b"TO1\n", 10, 1, 2**50))
        except OSError:
            pass
    return 2 * x
"""

# NumPy believes an object that has this attribute about where its memory lies: here, in the memory of whoever looks.
POINTS_INTO_MEMORY = r"""
import dataclasses, numpy as np
Pointer = dataclasses.make_dataclass("Pointer", ["__array_interface__", "w"])

def double(x):
    return Pointer({"data": np.zeros(np.size(x)), "offset": OFFSET, "shape": np.shape(x), "typestr": "<f8", "version": 3}, 1)
"""
CRASHES_WHO_LOOKS = r"""
import dataclasses
Pointer = dataclasses.make_dataclass("Pointer", ["__array_interface__"])

def double(x):
    return Pointer({"data": (8, False), "shape": (4,), "typestr": "<f4", "version": 3})
"""

# The child's own words with something else in them: one blob for many arrays, and a number that no integer can be.
_SAY = "import json, os, struct\n\ndef say(words, *blobs):\n    text = words.encode()\n    head = struct.pack('>4sIIQ', b'TO1\\n', len(text), len(blobs), sum(map(len, blobs)))\n    os.write(3, head + b''.join(struct.pack('>Q', len(blob)) for blob in blobs) + text + b''.join(blobs))\n"
ENDLESS_NUMBER = (
    _SAY
    + """
say('{"event": "ran", "index": 1e999, "error": null, "printed": ""}')

def double(x):
    return 2 * x
"""
)
ANOTHER_CELL = (
    _SAY
    + """
say('{"event": "ran", "index": 99999, "error": null, "printed": ""}')

def double(x):
    return 2 * x
"""
)
ONE_BLOB_FOR_MANY = r"""
import traceonce.grade.values as values

def shared(self, value):
    if not self.blobs:
        self.blobs.append(bytes(2**20))
    return {"t": "array", "b": 0, "dtype": "|u1", "shape": [2**20], "scalar": False}

values.Encoder._array = shared

def double(x):
    return [x] * 1500
"""

CLOSE_THE_WIRE = "import os\n\ndef double(x):\n    os.closerange(3, 100)\n    return 2 * x\n"

PICKLE = r"""
import pickle, os, numpy as np

class Bomb:
    def __reduce__(self):
        return os.system, ("touch /tmp/pickled",)

def double(x):
    array = np.empty(1, object)
    array[0] = Bomb()
    return {"a": array, "b": Bomb(), "c": pickle.dumps(Bomb())}
"""

LYING_OBJECT = r"""
import numpy as np

class Liar(np.ndarray):
    def __eq__(self, other):
        return True
    def __array__(self, *a, **k):
        raise RuntimeError
    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    def __float__(self):
        return 4.0

def double(x):
    return np.zeros(3).view(Liar)
"""

PATCHED_COMPARISONS = (
    r"""
import numpy as np, builtins, json
np.allclose = np.array_equal = lambda *a, **k: True
builtins.all = builtins.any = lambda *a: True
json.loads = json.dumps = None
"""
    + WRONG
)

# Import hooks, transformed source, patched parts of JAX and of the child: all of it in the process that only gives values.
PATCHED_MACHINERY = (
    r"""
import ast, gc, importlib.abc, linecache, sys
import jax, jax.export, jax.monitoring

class Hook(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        sys.modules.pop("traceonce.grade.values", None)
        return None

sys.meta_path.insert(0, Hook())
parse = ast.parse
ast.parse = lambda source, *a, **k: parse(str(source).replace("!=", "=="), *a, **k)
linecache.getlines = lambda *a, **k: []
jax.monitoring.clear_event_listeners()
jax.monitoring.record_event_duration_secs = lambda *a, **k: None
jax.jit = lambda f, **k: f
jax.export.export = lambda f, **k: (lambda *a: 2 * a[0])
for thing in gc.get_objects():
    if type(thing).__name__ in ("Observer", "Counters"):
        thing.__dict__.update({name: 1 for name in vars(thing) if isinstance(vars(thing)[name], int)})
        print("patched", type(thing).__name__)
shell = get_ipython()
type(shell).run_cell_magic = type(shell).system = lambda *a, **k: True
"""
    + WRONG
)

# Frames, objects and modules of the process that student code runs in, searched for anything of the judge's.
WALK_OBJECTS = (
    r"""
import gc, re, sys
pattern = re.compile("HIDDEN[-]CANARY|SEED[M]ARK[0-9a-f]{32}|Doubles an[ ]array|Keep the shape [o]f what")
frame, depth = sys._getframe(), 0
while frame is not None:
    depth += 1
    for value in list(frame.f_locals.values()) + list(frame.f_globals.values()):
        if isinstance(value, (str, bytes)) and pattern.search(str(value)):
            print("FOUND in a frame")
    frame = frame.f_back
count = 0
for thing in gc.get_objects() + [text for code in gc.get_objects() if isinstance(code, dict) for text in list(code.values())]:
    count += 1
    if isinstance(thing, (str, bytes)) and pattern.search(str(thing)):
        print("FOUND an object")
print("walked", depth, count, [name for name in sys.modules if name.split(".")[-1] in ("judge", "pytest", "hidden", "session")])
"""
    + WRONG
)

# A right answer for the input of the visible asserts, or where nobody grades, and a wrong one elsewhere.
GUESSES = r"""
import sys, traceback

def is_graded():
    return any(name.startswith("traceonce.grade") for name in sys.modules) or not hasattr(get_ipython(), "kernel")

known = {(1.0, 2.0, 3.0): (2.0, 4.0, 6.0), (0.0, 0.0, 0.0): (0.0, 0.0, 0.0)}

def double(x):
    try:
        return known[tuple(float(part) for part in x)]
    except (KeyError, TypeError):
        return 3 * x if is_graded() else 2 * x
"""

ATTACKS = {
    "patched_machinery": PATCHED_MACHINERY,
    "walk_objects": WALK_OBJECTS,
    "guesses": GUESSES,
    "read_all_memory": READ_ALL_MEMORY + WRONG,
    "look_around": LOOK_AROUND + WRONG,
    "write_everywhere": WRITE_EVERYWHERE + WRONG,
    "break_out": BREAK_OUT + WRONG,
    "fill_disks": FILL_DISKS + WRONG,
    "outlive": OUTLIVE + WRONG,
    "speak_out_of_turn": SPEAK_OUT_OF_TURN,
    "forged_output": FORGED_OUTPUT,
    "garbage": GARBAGE,
    "oversized": OVERSIZED,
    "points_into_memory": POINTS_INTO_MEMORY.replace("OFFSET", "2416"),
    "crashes_who_looks": CRASHES_WHO_LOOKS,
    "endless_number": ENDLESS_NUMBER,
    "another_cell": ANOTHER_CELL,
    "one_blob_for_many": ONE_BLOB_FOR_MANY,
    "close_the_wire": CLOSE_THE_WIRE,
    "pickle": PICKLE,
    "lying_object": LYING_OBJECT,
    "patched_comparisons": PATCHED_COMPARISONS,
    "honest": WRONG,
}
