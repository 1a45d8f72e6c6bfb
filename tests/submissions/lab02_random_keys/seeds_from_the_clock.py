# ---
# kind: wrong
# trap: makes a new seed from the clock
# fails: test_same_state_gives_the_same_key, test_run_goes_on_from_a_checkpoint
# hint: A clock
# ---

# %% nbgrader={"grade_id": "take_key"}
import time


def take_key(state):
    step_key = jax.random.key(time.time_ns() % 2**32)
    return {**state, "step": state["step"] + 1}, step_key
