"""Devices: what JAX finds, whether it computes, what runs on the GPU, and how memory there is handed out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from traceonce.doctor.findings import Finding
from traceonce.doctor.machine import Machine
from traceonce.doctor.memory import size

PROBE_SECONDS = 60.0
SMI_SECONDS = 15.0
_MARK = "traceonce-probe:"
_OPTION = "xla_cpu_experimental_ynn_fusion_type"
_ALLOCATORS = ("default", "platform", "bfc", "cuda_async", "vmm", "address")
"""What `jaxlib.xla_client.generate_pjrt_gpu_plugin_options` of jaxlib 0.11.2 accepts."""

# Runs in a child of its own: a broken driver makes the first call of a device hang, where no exception can reach it.
_PROBE = f'''
import json
import jax
import jax.numpy as jnp
found = {{"backend": jax.default_backend(), "devices": []}}
for device in jax.devices():
    memory = device.memory_stats() or {{}}
    found["devices"].append({{
        "id": device.id, "platform": device.platform, "kind": device.device_kind,
        "limit": memory.get("bytes_limit"), "used": memory.get("bytes_in_use"),
    }})
image, kernel = jnp.ones((1, 1, 4, 4)), jnp.ones((1, 1, 3, 3))
found["answer"] = float(jax.jit(lambda a, b: jax.lax.conv(a, b, (1, 1), "SAME"))(image, kernel).sum())
try:
    host = jax.devices("cpu")[0]
except RuntimeError as error:
    found["option"] = None
else:
    with jax.default_device(host):
        lowered = jax.jit(lambda x: x + 1).lower(1.0)
    try:
        lowered.compile(compiler_options={{"{_OPTION}": ""}})
        found["option"] = True
    except Exception as error:
        found["option"] = False if "No such compile option" in str(error) else str(error)
print("{_MARK}" + json.dumps(found))
'''
_ANSWER = 100.0  # 4 inner pixels see 9 ones, 8 edge pixels 6, 4 corners 4


def backend(machine: Machine) -> Iterator[Finding]:
    """Start JAX's backend in a child process, compute something on it, and report what it has."""
    if machine.installed("jax") is None or machine.installed("jaxlib") is None:
        return
    # Nothing of a GPU that others use is taken for the question.
    environ = {**machine.environ, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    ran = machine.run([sys.executable, "-P", "-c", _PROBE], PROBE_SECONDS, environ)
    named = machine.environ.get("JAX_PLATFORMS", "")
    if ran.code is None:
        found = (
            f"JAX did not answer within {PROBE_SECONDS:.0f} s: a GPU or its driver hangs, or the machine is overloaded"
        )
        yield Finding(
            "FAIL", "backend", found, "see whether `JAX_PLATFORMS=cpu traceonce doctor` answers; then reset the GPU."
        )
        return
    line = next((line for line in reversed(ran.out.splitlines()) if line.startswith(_MARK)), None)
    if ran.code != 0 or line is None:
        reason = _last_words(ran.error) or f"exit code {ran.code}"
        if named:
            advice = f"JAX_PLATFORMS is {named!r}: unset it, or install the plugin that it names."
        elif "XLA_FLAGS" in reason:
            advice = "unset XLA_FLAGS, or take that flag out: this jaxlib does not know it."
        else:
            advice = "run `python -c 'import jax; print(jax.devices())'` and read what it says first."
        yield Finding("FAIL", "backend", f"JAX does not start: {reason}", advice)
        return
    yield from _what_it_has(machine, json.loads(line.removeprefix(_MARK)))


def _what_it_has(machine: Machine, found: dict[str, Any]) -> Iterator[Finding]:
    devices = found["devices"]
    text = f"{found['backend']}, {len(devices)} device{'s' if len(devices) != 1 else ''}"
    driver = machine.read("/proc/driver/nvidia/version") is not None
    if found["answer"] != _ANSWER:
        text += f"; a small convolution gave {found['answer']:g} and not {_ANSWER:g}"
        yield Finding("FAIL", "backend", text, "do not trust this device: compare with JAX_PLATFORMS=cpu.")
    elif found["backend"] == "cpu" and driver and machine.environ.get("JAX_PLATFORMS") != "cpu":
        text += ", although there is an NVIDIA driver"
        yield Finding("WARN", "backend", text, "see the GPU plugin above; without it lessons run, on the CPU.")
    else:
        yield Finding("OK", "backend", f"{text}; computes")
    for device in devices:
        memory = (
            "" if device["limit"] is None else f", {size(device['limit'])} for JAX, {size(device['used'] or 0)} in use"
        )
        kind = device["kind"] if device["kind"] != device["platform"] else "the processor"
        yield Finding("OK", f"device {device['id']}", f"{device['platform']}: {kind}{memory}")
    if found["option"] is True:
        yield Finding("OK", "memory plans", f"{_OPTION} is there: plans on the CPU can show every buffer")
    elif found["option"] is None:
        yield Finding("OK", "memory plans", "no CPU backend is on, so its options were not asked for")
    else:
        reason = "" if found["option"] is False else f" ({_last_words(found['option'])})"
        text = f"{_OPTION} is not in this jaxlib{reason}: some fusions hide their buffers from plans on the CPU"
        yield Finding("WARN", "memory plans", text, "read temporary bytes on the CPU as a lower bound.")


def _last_words(error: str) -> str:
    """The line of a traceback or of a fatal log that says most."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    fatal = [re.sub(r"^F\d+ .*?\] ", "", line) for line in lines if re.match(r"F\d{4} ", line)]
    return (fatal or lines or [""])[-1][:300]


def allocator(machine: Machine) -> Iterator[Finding]:
    """The environment variables that decide how JAX takes memory on a GPU, under their old and new names."""
    environ = machine.environ
    new, old = environ.get("XLA_CLIENT_MEM_FRACTION", ""), environ.get("XLA_PYTHON_CLIENT_MEM_FRACTION", "")
    said = False
    if old and new:
        found = "XLA_CLIENT_MEM_FRACTION and its old name XLA_PYTHON_CLIENT_MEM_FRACTION are both set: JAX refuses that"
        yield Finding("FAIL", "allocator", found, "unset XLA_PYTHON_CLIENT_MEM_FRACTION.")
        said = True
    elif old:
        found = f"XLA_PYTHON_CLIENT_MEM_FRACTION={old} is the old name of XLA_CLIENT_MEM_FRACTION"
        yield Finding("WARN", "allocator", found, f"set XLA_CLIENT_MEM_FRACTION={old} instead, and unset the old one.")
        said = True
    fraction = new or old
    if fraction and not _is_fraction(fraction):
        found = f"the memory fraction is {fraction!r}, which is not a number above 0"
        yield Finding("FAIL", "allocator", found, "set XLA_CLIENT_MEM_FRACTION to a share such as 0.5.")
        said = True
    elif new and not old:
        yield Finding("OK", "allocator", f"XLA_CLIENT_MEM_FRACTION={new}: that share of a GPU's memory, not 75 %")
        said = True
    preallocate = environ.get("XLA_PYTHON_CLIENT_PREALLOCATE", "")
    if preallocate in ("false", "False", "0"):
        found = (
            "XLA_PYTHON_CLIENT_PREALLOCATE is off: memory is taken as needed, good for diagnosis and for sharing a GPU"
        )
        yield Finding("OK", "allocator", found)
        said = True
    elif preallocate:
        yield from _preallocate(preallocate)
        said = True
    kind = environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "")
    if kind:
        said = True
        yield _allocator_kind(kind)
    if not said:
        yield Finding("OK", "allocator", "JAX's own settings: on a GPU the first operation takes 75 % of its memory")


def _preallocate(value: str) -> Iterator[Finding]:
    # Anything but these three words means "on" to JAX, "no" and "off" included.
    if value.lower() in ("true", "1"):
        yield Finding("OK", "allocator", f"XLA_PYTHON_CLIENT_PREALLOCATE={value}: on, as it is without it")
    else:
        found = f"XLA_PYTHON_CLIENT_PREALLOCATE={value} means on: only false, False and 0 mean off"
        yield Finding("WARN", "allocator", found, "set it to false or to true.")


def _allocator_kind(kind: str) -> Finding:
    if kind.lower() not in _ALLOCATORS:
        found = f"XLA_PYTHON_CLIENT_ALLOCATOR={kind} is unknown: JAX refuses to start on a GPU"
        return Finding("FAIL", "allocator", found, f"set it to one of {', '.join(_ALLOCATORS)}, or unset it.")
    if kind.lower() == "platform":
        found = "XLA_PYTHON_CLIENT_ALLOCATOR=platform: each array is allocated and freed on its own, which is very slow"
        return Finding("WARN", "allocator", found, "keep it for diagnosis; unset it for real runs.")
    return Finding("OK", "allocator", f"XLA_PYTHON_CLIENT_ALLOCATOR={kind}")


def _is_fraction(text: str) -> bool:
    try:
        return float(text) > 0
    except ValueError:
        return False


def gpu(machine: Machine) -> Iterator[Finding]:
    """What runs on the NVIDIA GPUs now, as `nvidia-smi` says."""
    query = "--query-gpu=index,name,driver_version,memory.total,memory.used,utilization.gpu"
    ran = machine.run(["nvidia-smi", query, "--format=csv,noheader,nounits"], SMI_SECONDS, machine.environ)
    if ran.code == 127:
        if machine.read("/proc/driver/nvidia/version") is not None:
            found = "there is an NVIDIA driver and no nvidia-smi: what runs there is not known"
            yield Finding(
                "WARN", "GPU", found, "install nvidia-smi (it comes with the driver), or ask who else uses it."
            )
        return
    if ran.code is None:
        found = f"nvidia-smi did not answer within {SMI_SECONDS:.0f} s"
        yield Finding("FAIL", "GPU", found, "the driver hangs: restart the machine, or ask for the GPU to be reset.")
        return
    if ran.code != 0:
        reason = _last_words(ran.out) or _last_words(ran.error) or f"exit code {ran.code}"
        yield Finding(
            "FAIL", "GPU", f"nvidia-smi fails: {reason}", "repair the driver first; JAX cannot use it either."
        )
        return
    query = "--query-compute-apps=pid,process_name,used_memory"
    processes = machine.run(["nvidia-smi", query, "--format=csv,noheader,nounits"], SMI_SECONDS, machine.environ)
    yield from _usage(ran.out, processes.out if processes.code == 0 else "")


def _usage(cards: str, processes: str) -> Iterator[Finding]:
    for line in cards.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != 6:
            continue
        index, name, driver, total, used, busy = fields
        found = f"{name}, driver {driver}, {used} of {total} MiB used, busy {busy} %"
        if total.isdigit() and used.isdigit() and int(used) > int(total) // 4:
            advice = "see who it is below; JAX takes 75 % for itself: set XLA_CLIENT_MEM_FRACTION, or wait."
            yield Finding("WARN", f"GPU {index}", found, advice)
        else:
            yield Finding("OK", f"GPU {index}", found)
    listed = [[field.strip() for field in line.split(",")] for line in processes.splitlines() if line.strip()]
    for fields in listed:
        if len(fields) == 3:
            found = f"process {fields[0]} ({fields[1]}) holds {fields[2]} MiB"
            yield Finding("OK", "on the GPU", f"{found}; if its launcher is gone, it still holds them")
    if not listed:
        yield Finding("OK", "on the GPU", "no process is listed (in a container those outside of it are not)")
