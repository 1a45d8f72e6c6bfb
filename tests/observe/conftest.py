"""What the tests of the observer share."""

import gc
from collections.abc import Callable

import jax
import pytest


@pytest.fixture
def listeners() -> Callable[[], int]:
    """Count the listeners registered with JAX. The lists are private, and read here alone."""
    from jax._src import monitoring

    jax.clear_caches()  # JAX keeps static arguments, and with them the methods that other tests watched
    gc.collect()

    def count() -> int:
        lists = (
            monitoring._event_listeners,
            monitoring._event_duration_secs_listeners,
            monitoring._scalar_listeners,
            monitoring._event_time_span_listeners,
        )
        return sum(map(len, lists))

    return count
