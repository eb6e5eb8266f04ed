"""Examples a second of noisy stochastic gradients, beside Opacus and jax-privacy.

Usage: python docs/benchmarks/dpsgd.py [rounds]
       python docs/benchmarks/dpsgd.py growth [rounds]

The second form prints skdp's time for a step on growing tables.

Peers are measured in the same run, each where it can be imported. To set them up::

    python -m venv peers
    peers/bin/pip install numpy scipy scikit-learn joblib torch==2.13.0 opacus==1.6.0 \
        jax-privacy==2.0.0
    PYTHONPATH=. peers/bin/python docs/benchmarks/dpsgd.py

Everything runs on one processor core, and what is taken is the processor time of the whole
process, which other work on the machine disturbs less than the clock's. A round runs every
contender once, one after the other; medians over the rounds are printed.

skdp's figures are those of a whole step: Poisson sampling and noise from the operating system's
generator, clipped sums in double precision, noise on a grid, update. Peers draw their noise from
ordinary generators. "By hand" and jax-privacy get row numbers that were drawn beforehand, in
fixed-size batches, and free of charge.
"""

import os
import statistics
import sys
import time

import numpy as np
from threadpoolctl import threadpool_limits

from skdp._loops import NUMBA, NUMPY
from skdp._optim._batches import PoissonBatches
from skdp._optim._classification_losses import BinaryLogisticLoss, MultinomialLogisticLoss
from skdp._optim._clipped_sums import ClippedSums, sum_rounding
from skdp._optim._gradient_noise import GaussianNoise
from skdp.noise import RandomSource

CLIP, MULTIPLIER, LEARNING_RATE = 1.0, 1.0, 0.5
# rows, columns, type of the table, classes, batch, steps in a timed run
SETTINGS = (
    (100_000, 100, np.float32, 1, 1024, 98),
    (100_000, 100, np.float64, 1, 1024, 98),
    (100_000, 20, np.float32, 1, 256, 391),
    (100_000, 20, np.float64, 1, 256, 391),
    (20_000, 784, np.float32, 10, 1024, 20),
)
GROWTH = (10_000, 100_000, 1_000_000, 10_000_000)


class Skdp:
    """Schedule, clipped sums, noise and a plain update."""

    name, loops = "skdp engine", NUMPY

    def __init__(self, X, y, n_classes, batch, n_steps, rng):
        self.batch, self.n_steps = batch, n_steps
        self.batches = PoissonBatches(len(X), batch / len(X))
        if n_classes == 1:
            loss, y = BinaryLogisticLoss(), y.astype(np.float64)
        else:
            loss = MultinomialLogisticLoss(n_classes)
        self.sums = ClippedSums(X, y, loss, constant=1.0, clip=CLIP, loops=self.loops)
        self.weights = np.zeros((*loss.weights_shape, X.shape[1] + 1))
        rounding = sum_rounding(X.shape[1], n_classes, CLIP, len(X))
        sensitivity = CLIP + 2.0 * rounding
        self.noise = GaussianNoise(MULTIPLIER * sensitivity, self.weights.size, sensitivity)

    def run(self):
        source = RandomSource()
        batches = self.batches.draw(self.n_steps, source.stream())
        noise = self.noise.draw(self.n_steps, source.stream())
        for rows, drawn in zip(batches, noise, strict=True):
            gradient = self.noise.add(self.sums.sums(self.weights, rows), drawn, self.loops)
            gradient *= LEARNING_RATE / self.batch
            self.weights -= gradient


class SkdpCompiled(Skdp):
    """The same with compiled loops, which losses with one score have."""

    name, loops = "skdp engine with numba", NUMBA

    def __init__(self, X, y, n_classes, *rest):
        if n_classes > 1:
            raise ValueError("no loops are compiled for several scores")
        super().__init__(X, y, n_classes, *rest)


class Opacus:
    """Opacus with the rows of each batch gathered by hand."""

    mode, steps_share = "hooks", 1.0

    @property
    def name(self):
        return f"Opacus, rows by hand, {self.mode}"

    def __init__(self, X, y, n_classes, batch, n_steps, rng):
        import torch
        from opacus import PrivacyEngine

        torch.set_num_threads(1)
        self.torch, self.batch = torch, batch
        self.n_steps = max(1, int(n_steps * self.steps_share))
        self.X, self.y = torch.from_numpy(X), torch.from_numpy(y)
        if n_classes == 1:
            self.y = self.y.to(torch.float32)[:, None]
            self.criterion = torch.nn.BCEWithLogitsLoss(reduction="mean")
        else:
            self.criterion = torch.nn.CrossEntropyLoss(reduction="mean")
        module = torch.nn.Linear(X.shape[1], n_classes)
        data = torch.utils.data.TensorDataset(self.X, self.y)
        private = PrivacyEngine().make_private(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=LEARNING_RATE),
            criterion=self.criterion,
            data_loader=torch.utils.data.DataLoader(data, batch_size=batch),
            noise_multiplier=MULTIPLIER,
            max_grad_norm=CLIP,
            poisson_sampling=self.poisson,
            grad_sample_mode=self.mode,
        )
        if len(private) == 4:
            self.module, self.optimizer, self.criterion, self.loader = private
        else:
            self.module, self.optimizer, self.loader = private
        draws = rng.integers(len(X), size=(self.n_steps, batch))
        self.rows = [torch.from_numpy(np.sort(rows)) for rows in draws]

    poisson = False

    def batches(self):
        for rows in self.rows:
            yield self.X[rows], self.y[rows]

    def run(self):
        for X, y in self.batches():
            self.optimizer.zero_grad()
            self.criterion(self.module(X), y).backward()
            self.optimizer.step()


class OpacusFunctorch(Opacus):
    mode = "functorch"


class OpacusExpanded(Opacus):
    mode = "ew"


class OpacusGhost(Opacus):
    mode = "ghost"


class OpacusByMask(OpacusExpanded):
    """Poisson sampling included, by the rule of Opacus' own sampler."""

    @property
    def name(self):
        return "Opacus, rows by hand from a mask, ew"

    def batches(self):
        for _ in range(self.n_steps):
            rows = (self.torch.rand(len(self.X)) < self.batch / len(self.X)).nonzero()[:, 0]
            yield self.X[rows], self.y[rows]


class OpacusLoader(Opacus):
    """Opacus as its documentation says: its own loader of Poisson-sampled batches."""

    poisson, steps_share = True, 0.1

    @property
    def name(self):
        return "Opacus, its own loader"

    def batches(self):
        for number, pair in enumerate(self.loader):
            if number == self.n_steps:
                return
            yield pair


class JaxPrivacy:
    """jax-privacy, one compiled function for each step."""

    name = "jax-privacy, step by step"
    column = False

    def __init__(self, X, y, n_classes, batch, n_steps, rng):
        import jax
        import jax.numpy as jnp
        from jax_privacy import clipped_grad, noise_addition

        # The settings are run one after another, so each has its own precision.
        jax.config.update("jax_enable_x64", X.dtype == np.float64)
        self.jax, self.jnp, self.n_steps = jax, jnp, n_steps
        self.X = jnp.asarray(X)
        self.y = jnp.asarray(y if n_classes == 1 else np.eye(n_classes)[y], X.dtype)
        self.rows = jnp.asarray(np.sort(rng.integers(len(X), size=(n_steps, batch)), axis=1))

        def loss(weights, row, label):
            scores = row @ weights[0] + weights[1]
            if self.column:
                scores = scores[0]
            if n_classes == 1:
                return jnp.logaddexp(0.0, scores) - label * scores
            return jax.nn.logsumexp(scores) - scores @ label

        # Without microbatches, classes take ten times longer.
        size = None if n_classes == 1 else 64
        outputs = (n_classes,) if n_classes > 1 or self.column else ()
        gradient = clipped_grad(
            loss,
            l2_clip_norm=CLIP,
            batch_argnums=(1, 2),
            keep_batch_dim=False,
            microbatch_size=size,
        )
        privatizer = noise_addition.gaussian_privatizer(
            stddev=MULTIPLIER * CLIP, prng_key=jax.random.key(0)
        )
        weights = jnp.zeros((X.shape[1], *outputs), X.dtype), jnp.zeros(outputs, X.dtype)
        self.start = weights, privatizer.init(weights)

        def step(state, X, y, rows):
            weights, noise_state = state
            summed = gradient(weights, X[rows], y[rows])
            noisy, noise_state = privatizer.update(summed, noise_state)
            rate = LEARNING_RATE / batch
            return jax.tree.map(lambda w, g: w - rate * g, weights, noisy), noise_state

        self.step = self.compile(step)

    def compile(self, step):
        return self.jax.jit(step)

    def run(self):
        state = self.start
        for number in range(self.n_steps):
            state = self.step(state, self.X, self.y, self.rows[number])
        self.jax.block_until_ready(state[0])


class JaxPrivacyScan(JaxPrivacy):
    """jax-privacy, an epoch in one compiled scan."""

    name = "jax-privacy, one scan"

    def compile(self, step):
        def epoch(state, X, y, rows):
            def body(state, batch):
                return step(state, X, y, batch), None

            return self.jax.lax.scan(body, state, rows)[0]

        return self.jax.jit(epoch)

    def run(self):
        self.jax.block_until_ready(self.step(self.start, self.X, self.y, self.rows)[0])


class JaxPrivacyColumn(JaxPrivacy):
    """The same with weights of shape (n_columns, 1), as a layer with one output has them."""

    name, column = "jax-privacy, step by step, a column of weights", True

    def __init__(self, X, y, n_classes, *rest):
        if n_classes > 1:
            raise ValueError("there are several columns")
        super().__init__(X, y, n_classes, *rest)


class JaxPrivacyScanColumn(JaxPrivacyColumn, JaxPrivacyScan):
    name = "jax-privacy, one scan, a column of weights"


class OnePass:
    """Reading all rows once, in order: what the memory allows."""

    name = "X @ w, one pass"

    def __init__(self, X, y, n_classes, batch, n_steps, rng):
        self.X, self.w = X, np.zeros(X.shape[1], dtype=X.dtype)
        self.batch, self.n_steps = len(X), 1

    def run(self):
        self.X @ self.w


CONTENDERS = (
    OnePass,
    Skdp,
    SkdpCompiled,
    OpacusLoader,
    Opacus,
    OpacusExpanded,
    OpacusFunctorch,
    OpacusGhost,
    OpacusByMask,
    JaxPrivacy,
    JaxPrivacyScan,
    JaxPrivacyColumn,
    JaxPrivacyScanColumn,
)


def table(n_rows, n_columns, dtype, n_classes, rng):
    X = rng.standard_normal((n_rows, n_columns), dtype=dtype)
    return X, rng.integers(max(n_classes, 2), size=n_rows)


def contenders(setting):
    n_rows, n_columns, dtype, n_classes, batch, n_steps = setting
    rng = np.random.default_rng(0)
    X, y = table(n_rows, n_columns, dtype, n_classes, rng)
    for contender in CONTENDERS:
        try:
            made = contender(X, y, n_classes, batch, n_steps, rng)
            made.batch = getattr(made, "batch", batch)
            made.run()
        except Exception as error:
            print(f"{contender.__name__} is left out: {error!r}", file=sys.stderr)
            continue
        yield made


def growth(rounds):
    """Print the microseconds of a step at an expected batch of 256 rows of 20 columns."""
    rng = np.random.default_rng(0)
    X, y = table(GROWTH[-1], 20, np.float32, 1, rng)
    made = [Skdp(X[:n], y[:n], 1, 256, 400, rng) for n in GROWTH]
    times = [[] for _ in made]
    for _ in range(rounds):
        for one, seconds in zip(made, times, strict=True):
            start = time.process_time()
            one.run()
            seconds.append((time.process_time() - start) / one.n_steps)
    for n, seconds in zip(GROWTH, times, strict=True):
        print(f"{n:>10} rows: {1e6 * statistics.median(seconds):.1f} µs a step")


def main():
    grows = sys.argv[1:2] == ["growth"]
    numbers = sys.argv[2:] if grows else sys.argv[1:]
    rounds = int(numbers[0]) if numbers else 7
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    threadpool_limits(1)
    if grows:
        growth(rounds)
        return
    for setting in SETTINGS:
        n_rows, n_columns, dtype, n_classes, batch, _ = setting
        made = list(contenders(setting))
        rates = {one.name: [] for one in made}
        for _ in range(rounds):
            for one in made:
                start = time.process_time()
                one.run()
                seconds = time.process_time() - start
                rates[one.name].append(one.n_steps * one.batch / seconds)
        medians = {name: statistics.median(values) for name, values in rates.items()}
        ours = medians[Skdp.name]
        kind = "binary" if n_classes == 1 else f"softmax, {n_classes} classes"
        print(f"\n{n_rows} x {n_columns} {np.dtype(dtype)}, {kind}, batch {batch}\n")
        print("| | million examples a second | of the one pass | skdp is faster by |")
        print("|---|---|---|---|")
        for name, rate in medians.items():
            limit = medians[OnePass.name]
            print(f"| {name} | {rate / 1e6:.3g} | {rate / limit:.2f} | {ours / rate:.2f} |")


if __name__ == "__main__":
    main()
