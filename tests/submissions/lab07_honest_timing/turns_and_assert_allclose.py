# ---
# kind: alternative
# about: the last result of the burst alone is awaited, the arms take turns at the start, assert_allclose, the line from format, one wait for each leaf
# ---

# %% nbgrader={"grade_id": "finished"}
def finished(call, clock=time.perf_counter):
    before = clock()
    result = call()
    for leaf in jax.tree.leaves(result):
        leaf.block_until_ready()
    after = clock()
    return after - before


# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    shapes = " and ".join("{}{}".format(leaf.dtype, list(leaf.shape)).replace(" ", "") for leaf in leaves)
    (kind,) = {next(iter(leaf.devices())).device_kind for leaf in leaves}
    folder = jax.config.jax_compilation_cache_dir
    policy = "no cache" if folder is None else "cache in " + folder
    template = "On {} with jax={} and jaxlib={}: {}; {}; {} calls. {}, {}."
    return template.format(kind, jax.__version__, jax.lib.__version__, shapes, policy, calls, BOUNDARY, RULE)


# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    out = {}
    began = clock()
    placed = place(inputs)
    jax.block_until_ready(placed)
    out["transfer"] = clock() - began
    samples = [finished(lambda: step(*placed), clock) for _ in range(calls + 1)]
    out["cold"], out["latency"] = samples[0], float(np.median(samples[1:]))
    began = clock()
    for _ in range(calls):
        last = step(*placed)
    jax.block_until_ready(last)
    out["throughput"] = calls / (clock() - began)
    out["report"] = report_line(placed, calls)
    return out


# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    for _ in range(2):
        finished(b, clock)
        finished(a, clock)
    ratios = []
    for i in range(rounds):
        if i % 2:
            ta, tb = finished(a, clock), finished(b, clock)
        else:
            tb, ta = finished(b, clock), finished(a, clock)
        ratios.append(tb / ta)
    return float(np.median(ratios))


# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    try:
        assert jax.tree.structure(a) == jax.tree.structure(b)
        for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
            left, right = np.asarray(left), np.asarray(right)
            assert left.dtype == right.dtype and left.shape == right.shape
            assert not np.isnan(left).any()
            scale = float(np.abs(left).max())
            np.testing.assert_allclose(right, left, rtol=0, atol=rtol * scale)
    except AssertionError:
        return False
    return True


# %% nbgrader={"grade_id": "peaks"}
def peaks(arms, start):
    def one(arm):
        process = start()
        idle = process.peak_mb
        process.run(arm)
        return process.peak_mb - idle

    return dict(zip(arms, map(one, arms.values())))
