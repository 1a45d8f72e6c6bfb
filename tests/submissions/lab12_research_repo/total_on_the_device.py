# ---
# kind: alternative
# about: adds the losses up on the device, keys made in Python from the step, norms by outer products
# ---

# %% nbgrader={"grade_id": "batches"}
# digitnet/data.py
def batches(x, y, size, seed, epoch):
    order = np.random.default_rng([seed, epoch]).permutation(len(x))
    order = np.concatenate([order, np.full(-len(x) % size, -1)]).reshape(-1, size)
    for rows in order:
        yield x[rows], y[rows], rows >= 0

# %% nbgrader={"grade_id": "objective"}
# digitnet/train.py
def penalty(params, config):
    return config["decay"] * sum(jnp.sum(params[name] ** 2) for name in ("w1", "w2")) + config["rough"] * roughness(params)


def objective(params, x, y, valid, key, config):
    losses = jnp.where(valid, row_losses(params, x, y, key, config["keep"]), 0.0)
    return jnp.sum(losses) / jnp.sum(valid) + penalty(params, config), jnp.sum(losses)

# %% nbgrader={"grade_id": "train_step"}
# digitnet/train.py
def train_step(state, total, batch, key, config):
    grads, loss = jax.grad(objective, has_aux=True)(state["params"], *batch, key, config)
    velocity = {name: config["momentum"] * state["velocity"][name] + grad for name, grad in grads.items()}
    params = {name: leaf - config["rate"] * velocity[name] for name, leaf in state["params"].items()}
    return dict(params=params, velocity=velocity, step=state["step"] + 1), total + loss


train_step = jax.jit(train_step)

# %% nbgrader={"grade_id": "fit"}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    numbers = {name: np.float32(value) for name, value in config.items() if name not in ("batch", "seed")}
    count, history = int(state["step"]), []
    for epoch in range(first, last):
        total = np.float32(0)
        for batch in batches(x, y, config["batch"], config["seed"], epoch):
            state, total = train_step(state, total, batch, jax.random.fold_in(key, count), numbers)
            count += 1
        history.append(float(total) / len(x))
        if history[-1] - history[-1] != 0:
            raise FloatingPointError(epoch)
    return state, history

# %% nbgrader={"grade_id": "gradient_norms"}
# digitnet/evaluate.py
@jax.jit
def gradient_norms(params, x, y):
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    outer = jax.nn.softmax(hidden @ params["w2"] + params["b2"]) - jax.nn.one_hot(y, 10)
    inner = outer @ params["w2"].T * (1 - hidden**2)
    first = (1 + jnp.sum(x**2, axis=1)) * jnp.sum(inner**2, axis=1)
    return jnp.sqrt(first + (1 + jnp.sum(hidden**2, axis=1)) * jnp.sum(outer**2, axis=1))

# %% nbgrader={"grade_id": "evaluate"}
# digitnet/evaluate.py
mean_loss = jax.jit(lambda params, x, y: row_losses(params, x, y).mean())
share_right = jax.jit(lambda params, x, y: jnp.mean(jnp.argmax(scores(params, x), axis=-1) == y))


def evaluate(params, x, y):
    return dict(loss=float(mean_loss(params, x, y)), accuracy=float(share_right(params, x, y)))
