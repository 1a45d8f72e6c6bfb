# ---
# kind: wrong
# trap: counts leaves, and nothing else
# fails: test_broadcast_is_refused_by_path, test_dtype_is_refused_by_path, test_renamed_entry_is_named_on_both_sides, test_containers_are_compared, test_all_offenders_and_no_other
# hint: broadcasts without an error
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    wanted, got = len(jax.tree.leaves(params)), len(jax.tree.leaves(grads))
    if wanted != got:
        raise ValueError(f"{wanted} leaves in params, {got} in grads")
