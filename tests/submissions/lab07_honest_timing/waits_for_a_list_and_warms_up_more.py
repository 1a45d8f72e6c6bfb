# ---
# kind: alternative
# about: more warm-up calls, a burst of its own, the ratio of interleaved medians
# ---

# %% nbgrader={"grade_id": "bench"}
def ready(tree):
    return jax.tree.map(lambda leaf: leaf.block_until_ready(), tree)


def span(clock, call):
    begin = clock()
    ready(call())
    return clock() - begin


def bench(step, inputs, place=jax.device_put, clock=time.perf_counter, calls=20):
    placed = []
    transfer = span(clock, lambda: placed.append(place(inputs)) or placed[0])
    inputs = placed[0]
    cold = span(clock, lambda: step(*inputs))
    for _ in range(3):
        ready(step(*inputs))
    latency = sorted(span(clock, lambda: step(*inputs)) for _ in range(calls))
    middle = (latency[(calls - 1) // 2] + latency[calls // 2]) / 2
    begin = clock()
    results = []
    for _ in range(calls):
        results.append(step(*inputs))
    ready(results)
    took = clock() - begin
    line = report_line(inputs, calls)
    return dict(transfer=transfer, cold=cold, latency=middle, throughput=calls / took, report=line)

# %% nbgrader={"grade_id": "compare"}
def compare(a, b, clock=time.perf_counter, rounds=21):
    samples = {a: [], b: []}
    for turn in range(rounds + 2):
        for arm in (a, b):
            took = finished(arm, clock)
            if turn >= 2:
                samples[arm].append(took)
    return median(samples[b]) / median(samples[a])

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    left, form = jax.tree.flatten(a)
    right, other_form = jax.tree.flatten(b)
    if form != other_form:
        return False
    described = [[(leaf.shape, leaf.dtype) for leaf in leaves] for leaves in (left, right)]
    if described[0] != described[1]:
        return False
    excess = [np.abs(np.subtract(x, y)).max() - rtol * np.abs(x).max() for x, y in zip(left, right)]
    return all(bool(by <= 0) for by in excess)
