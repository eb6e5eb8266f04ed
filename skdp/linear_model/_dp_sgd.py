"""What noisy stochastic gradient estimators share: parameters, the run and partial fits."""

import math
import uuid
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skdp._sgd._defaults import Problem, Settings, automatic_settings
from skdp._sgd._loop import run_sgd
from skdp._sgd._plan import SAMPLINGS, Linear, clip_norm, plan_sgd
from skdp._sgd._updates import LEARNING_RATES, OPTIMIZERS, Update
from skdp.base import PrivateFit, charge, fitted_names, relation_of, terms_of
from skdp.linear_model._dp_sgd_progress import Progress
from skdp.utils._callbacks import CallbackSupportMixin
from skdp.utils._validation import (
    check_boolean,
    check_integer,
    check_magnitude,
    check_privacy_parameters,
    check_real,
)

__all__ = ["PartialFit", "PrivateSGDMixin", "Task", "check_choice"]

# How many calls of partial_fit share one partition of the ledger.
CALLS_OF_A_PARTITION = 256
LARGEST = 1e50


@dataclass(frozen=True)
class Task:
    """A loss, with the public quantities that settings follow from.

    Parameters
    ----------
    loss : loss
    slope, curvature, weights_norm : float
        As in `Problem`.
    """

    loss: object
    slope: float
    curvature: float
    weights_norm: float

    @property
    def n_outputs(self):
        return math.prod(self.loss.weights_shape)


@dataclass(frozen=True)
class _Checked:
    """Parameters that do not depend on the table."""

    epsilon: float
    delta: float
    relation: str
    data_norm: float
    constant: float
    settings: Settings
    penalised: bool
    learning_rate: str
    power_t: float
    average: bool
    radius: float
    verbose: int


class PartialFit(PrivateFit):
    """A private fit that goes on from a fitted estimator and leaves it as it was if it fails.

    Parameters
    ----------
    estimator : estimator
    accountant : PrivacyAccountant or None
        Which handle is charged: that of all rows or of a part of them.
    """

    def __init__(self, estimator, accountant):
        super().__init__(estimator)
        self._accountant = accountant
        self._earlier = {name: getattr(estimator, name) for name in fitted_names(estimator)}

    def charge(self, mechanism, size=None):
        """Book the event with the handle and return the source of its noise."""
        self._terms = terms_of(self._accountant)
        own, self._estimator.accountant = self._estimator.accountant, self._accountant
        try:
            self._spend, source = charge(self._estimator, mechanism)
        finally:
            self._estimator.accountant = own
        return source

    def _forget(self):
        super()._forget()
        for name, value in self._earlier.items():
            setattr(self._estimator, name, value)


class PrivateSGDMixin(CallbackSupportMixin):
    """Parameters and runs of estimators that are fitted by noisy stochastic gradients."""

    def _checked(self):
        epsilon, delta = check_privacy_parameters(self.epsilon, self.delta)
        data_norm = check_magnitude(self.data_norm, "data_norm")
        scaling = check_magnitude(self.intercept_scaling, "intercept_scaling")
        constant = (
            scaling * data_norm if check_boolean(self.fit_intercept, "fit_intercept") else 0.0
        )
        check_choice(self.partial_fit_rows, "partial_fit_rows", ("any", "disjoint"))
        check_choice(self.learning_rate, "learning_rate", LEARNING_RATES)
        radius = self.projection_radius
        radius = math.inf if radius is None else check_magnitude(radius, "projection_radius")
        if self.penalty not in ("l2", None):
            raise ValueError(f"penalty must be 'l2' or None, got {self.penalty!r}")
        return _Checked(
            epsilon,
            delta,
            relation_of(self.accountant),
            data_norm,
            constant,
            self._given_settings(delta),
            self.penalty is not None,
            self.learning_rate,
            _check_least(self.power_t, "power_t", 0.0),
            check_boolean(self.average, "average"),
            radius,
            _check_verbose(self.verbose),
        )

    def _given_settings(self, delta):
        sampling = _unless_auto(
            self.sampling, lambda value: check_choice(value, "sampling", ("auto", *SAMPLINGS))
        )
        if sampling == "poisson" and delta == 0.0:
            raise ValueError("sampling='poisson' needs delta > 0; 'without_replacement' takes 0")
        if sampling == "without_replacement" and delta > 0.0:
            raise ValueError("sampling='without_replacement' needs delta=0; 'poisson' takes others")
        batch_size = _unless_auto(self.batch_size, lambda v: check_integer(v, "batch_size", 1))
        if sampling == "full" and batch_size is not None:
            raise ValueError("sampling='full' takes all rows: leave batch_size='auto'")
        return Settings(
            optimizer=check_choice(self.optimizer, "optimizer", OPTIMIZERS),
            sampling=sampling,
            batch_size=batch_size,
            max_iter=_unless_auto(self.max_iter, lambda v: check_integer(v, "max_iter", 1)),
            clip=_unless_auto(self.max_grad_norm, lambda v: check_magnitude(v, "max_grad_norm")),
            alpha=_unless_auto(self.alpha, lambda v: _check_least(v, "alpha", 0.0)),
            eta0=_unless_auto(self.eta0, lambda v: check_magnitude(v, "eta0")),
            momentum=_unless_auto(self.momentum, _check_momentum),
        )

    def _plan(self, checked, task, shape):
        """Return the settings, the plan of the run and its update, from public quantities."""
        n_rows, n_columns = shape
        given = checked.settings
        if given.batch_size is not None and given.batch_size > n_rows:
            raise ValueError(f"batch_size={given.batch_size} exceeds the number of rows, {n_rows}")
        guarantee = checked.epsilon, checked.delta, checked.relation
        norm = math.hypot(checked.data_norm, checked.constant)
        expected = norm, task.slope, task.curvature, task.weights_norm
        problem = Problem(n_rows, n_columns, task.n_outputs, *expected, *guarantee)
        settings = automatic_settings(problem, given)
        n_steps = settings.n_steps(n_rows)
        kind = clip_norm(checked.delta)
        clip = check_magnitude(settings.clip, "max_grad_norm")
        model = Linear(n_rows, n_columns, task.n_outputs, checked.constant, clip, kind)
        plan = plan_sgd(settings.sampling, settings.batch_size, n_steps, model, *guarantee)
        update = Update(
            settings.optimizer,
            checked.learning_rate,
            settings.eta0,
            checked.power_t,
            settings.momentum,
            n_steps,
            max(1, n_steps // 2) if checked.average else 1,
            checked.radius,
        )
        return settings, plan, update

    def _run(self, fit, checked, task, X, targets, weights=None):
        """Plan, charge and run; return the plan, weights of shape (n_outputs, ...) and settings.

        `targets` is called after the charge.
        """
        settings, plan, update = self._plan(checked, task, X.shape)
        progress = Progress(self, plan, settings.max_iter, checked.verbose)
        source = fit.charge(plan)
        if weights is None:
            weights = np.zeros((task.n_outputs, plan.model.n_features))
        start = weights.reshape((*task.loss.weights_shape, plan.model.n_features))
        alpha = settings.alpha if checked.penalised else 0.0
        table = X, targets(), task.loss
        progress.begin()
        weights = run_sgd(plan, table, update, start, alpha, source, progress.after_step)
        weights = weights.reshape((task.n_outputs, plan.model.n_features))
        public = {
            "alpha_": alpha,
            "max_grad_norm_": plan.model.clip,
            "batch_size_": settings.batch_size,
            "sampling_": settings.sampling,
            "eta0_": settings.eta0,
            "momentum_": settings.momentum,
            "n_iter_": settings.max_iter,
        }
        return plan, weights, public

    def _next_part(self):
        """Return the handle that a call of partial_fit charges, and the number of the call."""
        calls = getattr(self, "n_partial_fits_", 0)
        if self.accountant is None or self.partial_fit_rows == "any":
            return self.accountant, calls + 1
        if not hasattr(self.accountant, "partition"):
            raise ValueError("partial_fit_rows='disjoint' needs a PrivacyAccountant")
        number, part = divmod(calls, CALLS_OF_A_PARTITION)
        if not hasattr(self, "_partition"):
            self._partition = f"partial_fit {uuid.uuid4().hex}"
        name = f"{self._partition} {number}"
        return self.accountant.partition(name, CALLS_OF_A_PARTITION)[part], calls + 1

    def _partial_sampler(self, plan, call):
        """Say in words which rows a call of partial_fit used, and what calls cost together."""
        rows = (
            "rows declared disjoint from those of other calls"
            if self.partial_fit_rows == "disjoint"
            else "a charge of its own, which adds to those of other calls"
        )
        return f"{plan.sampler}; call {call} of partial_fit: {rows}"

    def _start_over(self):
        """Forget the partition of earlier calls of partial_fit."""
        self.__dict__.pop("_partition", None)

    def __getstate__(self):
        # Two copies that went on in one partition could put different rows into one part.
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_partition"}


def check_choice(value, name, choices):
    """Return a value that is one of some choices, or raise `ValueError`."""
    if not (isinstance(value, str) and value in choices):
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")
    return value


def _unless_auto(value, check):
    return None if isinstance(value, str) and value == "auto" else check(value)


def _check_least(value, name, low):
    value = check_real(value, name)
    if not low <= value <= LARGEST:
        raise ValueError(f"{name} must be between {low:g} and {LARGEST:g}, got {value!r}")
    return value


def _check_momentum(value):
    value = check_real(value, "momentum")
    if not 0.0 <= value < 1.0:
        raise ValueError(f"momentum must be in [0, 1), got {value!r}")
    return value


def _check_verbose(value):
    if not (isinstance(value, Integral | bool) and value >= 0):
        raise ValueError(f"verbose must be an integer of at least 0, got {value!r}")
    return int(value)
