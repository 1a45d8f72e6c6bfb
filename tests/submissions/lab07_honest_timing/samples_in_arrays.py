# ---
# kind: alternative
# about: explicit loops, NumPy medians, leaves awaited one by one, in pairs a b b a
# ---

# %% nbgrader={"grade_id": "finished"}
def finished(call, clock=time.perf_counter):
    before = clock()
    result = call()
    for leaf in jax.tree.leaves(result):
        leaf.block_until_ready()
    return clock() - before

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    def one(leaf):
        return leaf.dtype.name + "[" + ",".join(str(n) for n in leaf.shape) + "]"

    described = {
        "device": next(iter(jax.tree.leaves(placed)[0].devices())).device_kind,
        "versions": (jax.__version__, jax.lib.__version__),
        "inputs": " ".join(one(leaf) for leaf in jax.tree.leaves(placed)),
        "cache": "no cache" if jax.config.jax_compilation_cache_dir is None else jax.config.jax_compilation_cache_dir,
        "rules": f"{BOUNDARY} | {RULE}",
        "calls": calls,
    }
    return " | ".join(f"{name}: {value}" for name, value in described.items())

# %% nbgrader={"grade_id": "bench"}
def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    times = [clock()]
    placed = place(inputs)
    jax.block_until_ready(placed)
    times.append(clock())
    jax.block_until_ready(step(*placed))
    times.append(clock())
    samples = np.zeros(calls)
    for i in range(calls):
        begin = clock()
        jax.block_until_ready(step(*placed))
        samples[i] = clock() - begin
    begin = clock()
    for _ in range(calls):
        last = step(*placed)
    jax.block_until_ready(last)
    rate = calls / (clock() - begin)
    return {
        "transfer": times[1] - times[0],
        "cold": times[2] - times[1],
        "latency": np.median(samples),
        "throughput": rate,
        "report": report_line(placed, calls),
    }

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    finished(a, clock), finished(b, clock)
    ratios = np.zeros(rounds)
    for i in range(rounds):
        if i % 2:
            of_b = finished(b, clock)
            ratios[i] = of_b / finished(a, clock)
        else:
            of_a = finished(a, clock)
            ratios[i] = finished(b, clock) / of_a
    return float(np.median(ratios))

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    def close(left, right):
        left, right = np.asarray(left), np.asarray(right)
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        return np.allclose(left, right, rtol=0, atol=rtol * abs(left).max())

    try:
        return all(jax.tree.leaves(jax.tree.map(close, a, b)))
    except ValueError:
        return False

# %% nbgrader={"grade_id": "peaks"}
def peaks(arms, start):
    def one(arm):
        process = start()
        base = process.peak_mb
        process.run(arm)
        return process.peak_mb - base

    return {name: one(arm) for name, arm in arms.items()}
