"""Bytes: live, planned, sampled, and who holds them."""

import gc
import threading

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from traceonce import plan, watch, watch_memory
from traceonce.errors import TraceOnceError
from traceonce.observe import live_bytes, memory, sample
from traceonce.observe.memory import executables
from traceonce.observe.planning import HIDING_OPTION


def struct(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def test_a_buffer_that_two_array_objects_share_counts_once():
    gc.collect()
    before = live_bytes()
    array = jax.device_put(np.zeros(1000, np.float32))
    twin = array.addressable_shards[0].data
    gc.collect()
    after = live_bytes()
    assert twin.unsafe_buffer_pointer() == array.unsafe_buffer_pointer()
    assert after.bytes - before.bytes == 4000
    assert after.listed - before.listed == 4000 * (after.arrays - before.arrays)
    del array, twin
    gc.collect()
    assert live_bytes().bytes == before.bytes


def test_rebinding_in_a_loop_keeps_one_buffer():
    counts = []
    for _ in range(4):
        array = jax.device_put(np.zeros(1013, np.float32))
        gc.collect()
        counts.append(sum(one.shape == (1013,) for one in jax.live_arrays()))
    assert array.shape == (1013,)
    assert len(set(counts)) == 1


def test_each_shape_leaves_an_executable_until_the_caches_are_cleared():
    step = watch(jax.jit(lambda x: (x * 2).sum()))
    start = executables()
    for n in range(1, 11):
        step(np.ones(n, np.float32))
    grown = executables() - start
    assert grown == step.counts.compiles == 10
    jax.clear_caches()
    gc.collect()
    assert executables() < start + grown


def test_a_second_wrapper_of_the_same_function_inherits_its_programs():
    def square(x):
        return (x * x).sum()

    with watch() as seen:
        jax.jit(square)(np.ones(3, np.float32))
        jax.jit(square)(np.ones(3, np.float32))
    assert seen["square"].compiles == 1


def test_a_full_sample_has_every_figure():
    one = sample()
    assert one.rss > 10_000_000
    assert one.live.bytes >= 0
    assert isinstance(one.devices, tuple)
    assert one.executables is None or one.executables >= 0


def test_memory_is_sampled_by_a_thread_that_is_gone_afterwards(listeners):
    gc.collect()
    before = listeners()
    names = []
    with watch_memory(rate=200) as seen:
        names = [thread.name for thread in threading.enumerate()]
        threading.Event().wait(0.2)
    assert "traceonce-memory" in names
    assert "traceonce-memory" not in [thread.name for thread in threading.enumerate()]
    assert len(seen.samples) > 2
    assert seen.peak_rss >= seen.samples[0].rss
    assert listeners() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_sampling_thread_ends_after_an_error(error):
    def interrupted():
        with watch_memory(rate=200):
            raise error

    with pytest.raises(error):
        interrupted()
    assert "traceonce-memory" not in [thread.name for thread in threading.enumerate()]


def test_the_sampling_thread_calls_no_jax(monkeypatch):
    callers = set()
    real = jax.live_arrays

    def noted(*args):
        callers.add(threading.current_thread())
        return real(*args)

    monkeypatch.setattr(jax, "live_arrays", noted)
    step = watch(jax.jit(lambda x: x + 1))
    with watch_memory(rate=500):
        for n in range(1, 4):
            step(np.ones(n, np.float32))
        threading.Event().wait(0.1)
    assert callers == {threading.main_thread()}


def test_samples_at_call_boundaries_carry_live_bytes_and_reach_subscribers():
    step, heard = watch(jax.jit(lambda x: x + 1)), []
    with watch_memory(rate=1000) as seen:
        seen.subscribe(heard.append)
        for n in range(1, 4):
            step(np.ones(n, np.float32))
    assert sum(one.live is not None for one in heard) >= 2
    assert heard == seen.samples


def test_a_rate_that_makes_no_sense_is_refused():
    with pytest.raises(TraceOnceError, match="samples a second"):
        watch_memory(rate=0)


def test_without_psutil_linux_still_answers_and_others_are_told_what_to_install(monkeypatch):
    with_psutil = memory.rss()
    monkeypatch.setitem(__import__("sys").modules, "psutil", None)
    assert abs(memory.rss() - with_psutil) < 100_000_000

    def missing(*args, **kwargs):
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)
    with pytest.raises(TraceOnceError, match="pip install psutil"):
        memory.rss()


# -- plans


def through_a_square(x):
    """(200,) to a scalar, through a 200 x 200 matrix."""
    a = jnp.sort(jnp.sin(x[:, None] * x[None, :]), axis=0)
    return (a @ a.T).sum()


def test_a_wide_vmap_needs_the_whole_batch_of_intermediates_and_a_chunked_map_does_not():
    arms = plan.compare(
        wide=(jax.vmap(through_a_square), struct(64, 200)),
        chunked=(lambda v: jax.lax.map(through_a_square, v, batch_size=8), struct(64, 200)),
    )
    assert arms["wide"].temporaries > 6 * arms["chunked"].temporaries
    assert arms["wide"].arguments == arms["chunked"].arguments == 64 * 200 * 4
    assert str(arms).splitlines()[1].startswith("wide")


def test_the_gradient_of_a_scan_grows_with_its_length_and_checkpoint_halves_it():
    def body(w, c, x):
        return jnp.tanh(jnp.sin(c @ w) + jnp.cos(c * x))

    def gradient(body):
        def loss(w, xs):
            carry, _ = jax.lax.scan(lambda c, x: (body(w, c, x), None), jnp.zeros((64, 64)), xs)
            return carry.sum()

        return jax.grad(loss)

    short = plan(gradient(body), struct(64, 64), struct(100)).temporaries
    long = plan(gradient(body), struct(64, 64), struct(400)).temporaries
    checkpointed = plan(gradient(jax.checkpoint(body)), struct(64, 64), struct(400)).temporaries
    assert long > 3 * short
    assert checkpointed < 0.6 * long


def test_checkpoint_around_the_whole_saves_less_than_around_each_layer():
    def layer(w, h):
        return jnp.tanh(jnp.sin(h @ w))

    def net(layer):
        def loss(ws, h):
            for i in range(12):
                h = layer(ws[i], h)
            return h.sum()

        return loss

    def temporaries(loss):
        return plan(jax.grad(loss), struct(12, 64, 64), struct(512, 64)).temporaries

    plain, whole, each = temporaries(net(layer)), temporaries(jax.checkpoint(net(layer))), None
    each = temporaries(net(jax.checkpoint(layer)))
    assert whole > 0.8 * plain
    assert each < 0.9 * plain


def test_fused_buffers_on_cpu_are_planned_too():
    def fan_out(x, ws):
        return jnp.stack([jnp.tanh(x @ w) for w in ws]).sum()

    found = plan(fan_out, struct(256, 256), [struct(256, 256)] * 16)
    assert found.complete
    assert found.temporaries > 256 * 256 * 4


def test_donated_memory_is_counted_once_and_the_old_state_is_dead():
    step = jax.jit(lambda state: state * 2, donate_argnums=0)
    found = plan(step, struct(1000))
    assert (found.arguments, found.outputs, found.aliases) == (4000, 4000, 4000)
    assert found.total == found.arguments + found.temporaries
    old = jax.device_put(np.ones(1000, np.float32))
    step(old)
    assert old.is_deleted()


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, eqx.filter_jit, lambda f: watch(jax.jit(f))])
def test_a_plan_is_made_of_any_kind_of_function(wrap):
    found = plan(wrap(lambda x: x + 1), jnp.ones(100))
    assert found.arguments == 400
    assert found.outputs >= 400


def test_a_plan_is_not_counted_by_a_block():
    with watch() as seen:
        plan(jax.jit(lambda x: x + 1), struct(10))
    assert len(seen) == 0


def test_what_the_function_raises_while_it_is_planned_is_the_users_own():
    def broken(x):
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        plan(broken, struct(3))


def test_an_xla_without_the_option_is_said_to_hide_buffers(monkeypatch):
    from traceonce.observe import planning

    monkeypatch.setattr(planning, "_option_exists", lambda: False)
    found = plan(jax.jit(lambda x: x + 1), struct(3))
    assert not found.complete
    assert HIDING_OPTION in str(found)


def test_an_arm_that_is_no_function_is_refused():
    with pytest.raises(TraceOnceError, match="arm 'a'"):
        plan.compare(a=3)


def test_a_subscriber_of_memory_that_raises_is_dropped_and_the_computation_goes_on():
    heard, asked = [], []

    def broken(sample):
        asked.append(sample)
        raise ValueError("no picture")

    memory = watch_memory()
    memory.subscribe(broken)
    memory.subscribe(heard.append)
    memory.when_closed(lambda: heard.append("closed"))
    with pytest.warns(RuntimeWarning, match="no picture"), memory:
        pass
    assert heard == [*memory.samples, "closed"]
    assert asked == memory.samples[:1]
    memory.when_closed(lambda: heard.append("again"))
    assert heard[-1] == "again"
