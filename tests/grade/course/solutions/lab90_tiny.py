# %% [markdown]
# # A lab for the grader's own tests

# %% nbgrader={"grade_id": "setup", "solution": false, "grade": false, "locked": true, "schema_version": 3}
import jax.numpy as jnp

RATE = 0.5


# %% nbgrader={"grade_id": "double", "solution": true, "grade": false, "locked": false, "schema_version": 3}
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_double", "solution": false, "grade": true, "points": 1, "locked": true, "schema_version": 3}
assert float(double(2.0)) == 4.0


# %% nbgrader={"grade_id": "step", "solution": true, "grade": false, "locked": false, "schema_version": 3}
def step(params, gradient, rate):
    ### BEGIN SOLUTION
    return {**params, "w": params["w"] - rate * gradient}
    ### END SOLUTION


# %% nbgrader={"grade_id": "test_step", "solution": false, "grade": true, "points": 2, "locked": true, "schema_version": 3}
assert float(step({"w": jnp.array(1.0)}, jnp.array(2.0), 0.25)["w"]) == 0.5
