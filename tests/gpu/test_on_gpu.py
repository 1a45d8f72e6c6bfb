"""Where the instruments see other things on a GPU than on a CPU. ``make test-gpu`` runs these; ``make test`` leaves them out.

In a dry run (``TRACEONCE_GPU_DRY``) the same code runs on a CPU up to the line that only a GPU can answer, and is skipped there.
"""

import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from traceonce import plan, watch, watch_memory
from traceonce.doctor import Machine, devices, examine, packages
from traceonce.observe.syncing import syncs
from traceonce.sandbox import run_capped

pytestmark = pytest.mark.gpu
DRY = bool(os.environ.get("TRACEONCE_GPU_DRY"))
MB = 2**20


@pytest.fixture(scope="module", autouse=True)
def _backend():
    if jax.default_backend() != "gpu" and not DRY:
        pytest.skip("needs a GPU: make test-gpu runs this where there is one")


def only_a_gpu_can_say(fact):
    """The end of a test in a dry run."""
    if jax.default_backend() != "gpu":
        pytest.skip(f"a dry run cannot show that {fact}")


def found(check, name, **environ):
    return [finding for finding in check(Machine(environ=os.environ | environ)) if finding.subject.startswith(name)]


def test_doctor_finds_the_devices_that_jax_has():
    (backend,) = found(devices.backend, "backend")
    assert backend.level == "OK", backend.found
    assert f"{jax.default_backend()}, {jax.device_count()} device" in backend.found
    rows = found(devices.backend, "device ")
    assert len(rows) == jax.device_count()
    only_a_gpu_can_say("a device is named with its memory")
    for row, device in zip(rows, jax.devices(), strict=True):
        assert device.device_kind in row.found
        assert "for JAX" in row.found


def test_doctor_names_card_and_driver_as_nvidia_smi_does():
    findings = list(devices.gpu(Machine()))
    only_a_gpu_can_say("there is a driver")
    asked = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    name, driver = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()[0].split(", ")
    (card,) = [finding for finding in findings if finding.subject == "GPU 0"]
    assert f"{name}, driver {driver}" in card.found


def test_doctor_names_one_plugin_and_a_cudnn_within_its_bounds():
    levels = {finding.level for check in (packages.plugins, packages.cudnn) for finding in check(Machine())}
    assert "FAIL" not in levels
    only_a_gpu_can_say("cuDNN has a provider")
    texts = [finding.found for finding in packages.cudnn(Machine())]
    assert any("within" in text for text in texts), texts
    assert not any("not used" in text for text in texts)


def test_doctor_of_the_whole_machine_fails_at_nothing():
    failed = [f"{finding.subject}: {finding.found}" for finding in examine(Machine()) if finding.level == "FAIL"]
    assert failed == []


def test_watch_memory_reads_the_allocator():
    with watch_memory() as seen:
        kept = jax.jit(lambda: jnp.ones((16 * MB,), "float32"))()
        kept.block_until_ready()
    last = [sample for sample in seen.samples if sample.devices is not None][-1]
    assert last.live.bytes >= 64 * MB
    only_a_gpu_can_say("the allocator counts what is in use")
    (device,) = [one for one in last.devices if one.device == str(next(iter(kept.devices())))]
    assert 64 * MB <= device.in_use <= device.peak <= device.limit
    assert f"in use on {device.device}" in str(seen) or device.device in str(seen)


def test_peak_of_the_device_rises_by_what_was_planned():
    x = jnp.ones((2048, 2048))
    program = jax.jit(lambda x: (x[:, None, :64] * x[None, :, :64]).sum(-1) @ x)
    planned = plan(program, x)
    assert planned.outputs == x.nbytes
    assert planned.total >= 2 * x.nbytes
    only_a_gpu_can_say("the allocator's peak follows the plan")
    device = next(iter(x.devices()))
    before = device.memory_stats()["bytes_in_use"]
    jax.block_until_ready(program(x))
    rise = device.memory_stats()["peak_bytes_in_use"] - before
    assert rise >= planned.outputs


def test_a_plan_of_a_donating_program_has_aliases():
    def update(state, gradient):
        return state - 0.1 * gradient

    state, gradient = jnp.ones((512, 512)), jnp.ones((512, 512))
    donating = jax.jit(update, donate_argnums=0)
    both = plan.compare(plain=(update, state, gradient), donating=(donating, state, gradient))
    assert both["plain"].platform == jax.default_backend()
    assert (both["plain"].aliases, both["donating"].aliases) == (0, state.nbytes)
    assert both["plain"].total - both["donating"].total == state.nbytes
    donating(state, gradient)
    assert state.is_deleted()


def test_a_plan_counts_an_intermediate_that_is_too_large_to_fuse_away():
    keys = jnp.ones((64, 256, 256))
    wide = plan(jax.vmap(lambda w: jnp.linalg.norm(w @ w.T @ w)), keys)
    narrow = plan(lambda ws: jax.lax.map(lambda w: jnp.linalg.norm(w @ w.T @ w), ws), keys)
    assert wide.complete
    assert wide.temporaries > 4 * narrow.temporaries


def run_and_watch(device):
    """A loop with a short last batch, a weak type and a static value, on one device."""

    def step(w, x, power):
        return w - 0.1 * jnp.mean(x) ** power

    with jax.default_device(device), watch() as seen:
        step = watch(jax.jit(step, static_argnums=2))
        w = jnp.float32(1.0)
        for size in (8, 8, 8, 5):
            w = step(w, np.ones(size, "float32"), 2)
        step(1.0, np.ones(8, "float32"), 2)
        step(w, np.ones(8, "float32"), 3)
    counts = seen["step"]
    return counts.calls, counts.traces, counts.lowerings, counts.compiles


def test_counts_are_the_same_on_cpu_and_gpu():
    on_cpu = run_and_watch(jax.devices("cpu")[0])
    assert on_cpu[0] == 6
    assert on_cpu[1] >= 4
    assert run_and_watch(jax.devices()[0]) == on_cpu


def test_syncs_are_counted_once_and_waits_apart():
    x = jnp.ones((4, 4))
    with syncs() as seen:
        float(x.sum())
        np.asarray(x)
        jax.device_get({"a": x, "b": x})
        jax.block_until_ready(x * 2)
    assert (seen.reads, seen.waits) == (3, 1)


def test_a_transfer_guard_stops_what_syncs_counts():
    x = jnp.ones(4).sum()
    silent = True
    with jax.transfer_guard_device_to_host("disallow"), syncs() as seen:
        try:
            float(x)
        except jax.errors.JaxRuntimeError:
            silent = False
    assert silent == (jax.default_backend() == "cpu")
    if silent:
        assert seen.reads == 1


PROBE = """
import json, jax, jax.numpy as jnp
jnp.ones((1000, 1000)).block_until_ready()
print(json.dumps(jax.devices()[0].memory_stats() or {}))
"""


def stats_of_a_child(**environ):
    ending = run_capped(PROBE, memory_mb=8000, environment={"XLA_PYTHON_CLIENT_PREALLOCATE": "true", **environ})
    assert ending.kind == "finished", ending.stderr
    return json.loads(ending.stdout.splitlines()[-1])


def test_allocator_settings_hold_in_a_capped_child():
    small = stats_of_a_child(XLA_CLIENT_MEM_FRACTION="0.05")
    large = stats_of_a_child(XLA_CLIENT_MEM_FRACTION="0.1", XLA_PYTHON_CLIENT_PREALLOCATE="false")
    only_a_gpu_can_say("the fraction sets the limit")
    assert large["bytes_limit"] == pytest.approx(2 * small["bytes_limit"], rel=0.1)
    assert small["pool_bytes"] > 0.8 * small["bytes_limit"]
    assert large["pool_bytes"] < 0.5 * large["bytes_limit"]


def test_an_array_over_the_limit_of_a_child_is_refused_with_words_that_the_course_knows():
    program = "import jax.numpy as jnp\njnp.ones((10**6, 10**6)).block_until_ready()"
    ending = run_capped(program, memory_mb=8000, environment={"XLA_CLIENT_MEM_FRACTION": "0.05"})
    assert ending.kind == "resource_exhausted"
    only_a_gpu_can_say("it is the device's allocator that refuses")
    assert "RESOURCE_EXHAUSTED" in ending.stderr


def test_a_program_under_the_observer_says_what_it_compiled_on_this_backend(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import jax, jax.numpy as jnp\nf = jax.jit(lambda x: x * 2)\nfor n in (3, 3, 4):\n    f(jnp.ones(n))\n"
    )
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "traceonce", "run", "--json", str(report), str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(report.read_text())
