"""Plans of private releases, made only from public information. Mechanisms are the simplest plans.

A plan contains the privacy event, which is charged, and a `run`, which makes the release
afterwards.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol

from skdp._loops import NUMPY
from skdp.accounting import Composed, Event, Gaussian, get_epsilon
from skdp.accounting._events import gaussian_mu, leaves
from skdp.accounting._gaussian import gaussian_noise_multiplier
from skdp.mechanisms._gaussian import GammaNormMechanism, GaussianMechanism
from skdp.mechanisms._laplace import GeometricMechanism, LaplaceMechanism
from skdp.mechanisms._stages import UNNAMED, sampler_of, stages_of
from skdp.utils._validation import check_delta, check_epsilon
from skdp.utils._values import FrozenValue, checked, computed


@dataclass(frozen=True, kw_only=True)
class Plan(FrozenValue):
    """A planned private release: its cost, its stages, and the function that makes it.

    An estimator's ``plan_fit(shape, guarantee)`` returns a plan, made from parameters and the
    public shape. `PrivateFit.run` charges its event, then calls `run` with noise from the source
    that the charge returned. A plan is a value that can be pickled. Therefore, `run` is a
    module-level function, with its first arguments bound by `functools.partial`, or a method of a
    frozen value. Use `plan_release` to plan one release with the noise of a mechanism.

    Parameters
    ----------
    name : str
        Name of the mechanism.
    event : Event
        Privacy event that the accountant charges.
    epsilon, delta : float
        The guarantee to which the plan was calibrated.
    scale, sensitivity : float
        The noise scale, and the sensitivity of the values to which the noise is added.
    stages : tuple of Stage, default=None
        The releases that make up the plan. None means one release without a name.
    run : callable, default=None
        ``run(rows, source, persons=None)`` makes the release. None for a part of another plan,
        whose `run` makes the releases of all parts.
    by_person : bool, default=True
        True if `run` accepts `persons`. Rows then have weights that sum to 1 for each person, so
        the sensitivity of a person is that of a row.
    sparse_output : bool, default=False
        True if a transformer's output is sparse.
    noise_multiplier : float, default=None
        Noise multiplier of each step of a descent, for the privacy statement.
    total_excess_loss : float, default=None
        Expected excess loss of a predictor, summed over rows.
    mechanism : object, default=None
        The mechanism of the main release, or the description of the release, for callers that
        compute its precision or publish facts about it.
    """

    name: str
    event: Event
    epsilon: float
    delta: float
    scale: float | None
    sensitivity: float | None
    stages: tuple = computed()
    run: Callable | None = field(default=None, compare=False)
    by_person: bool = True
    sparse_output: bool = False
    noise_multiplier: float | None = None
    total_excess_loss: float | None = None
    mechanism: object = field(default=None, hash=False)

    def __post_init__(self):
        if self.stages is None:
            vars(self)["stages"] = stages_of(self)

    @property
    def loops(self):
        """Version of the loops over rows that `run` uses; workers must have the same version.

        See `skdp._loops`.
        """
        return getattr(self.mechanism, "loops", NUMPY)

    @property
    def sampler(self):
        """Description of the rows that the stages read."""
        return sampler_of(self.stages)


def plan_release(
    mechanism, run, *, guarantee=None, stage_name=UNNAMED, unit="", size=None, sparse_output=False
):
    """Return the plan of a release with the noise of one mechanism.

    Parameters
    ----------
    mechanism : mechanism
    run : callable
        ``run(rows, source, persons=None)`` makes the release.
    guarantee : Guarantee, default=None
        The epsilon and delta that are charged. None charges those of the mechanism; its delta is 0
        if it does not need one.
    stage_name : str
        Name of the released values.
    unit : str, default=""
        Name of the public or released quantity that is the unit of these values, "" for 1.
    size : int, default=None
        Number of values that are released together; None if no noise is added to values.
    sparse_output : bool, default=False
        True if a transformer's output is sparse.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        If epsilon is too small for `size` values.
    """
    if size is not None:
        mechanism.check_size(size)
    cost = guarantee
    if guarantee is None:
        cost = mechanism
    return Plan(
        name=mechanism.name,
        event=mechanism.event,
        epsilon=cost.epsilon,
        delta=cost.delta,
        scale=mechanism.scale,
        sensitivity=mechanism.sensitivity,
        stages=stages_of(mechanism, stage_name, unit),
        run=run,
        sparse_output=sparse_output,
        mechanism=mechanism,
    )


class Mechanism(Protocol):
    """Noise that is added to a vector: the simplest plan, whose run is `release`.

    Code that needs the precision of a release calls a method of the mechanism. It does not infer
    the noise distribution from delta or from a type.

    Notes
    -----
    Mechanisms with independent noise in each value (Laplace, Gaussian, geometric) also have
    ``mean_error(size)``, the mean magnitude of the noise, and ``tail(probability, size, terms)``, a
    bound that the sum of the noise in `terms` values exceeds with at most that probability.
    Mechanisms that choose a candidate, and randomized response, add no noise to a vector. They have
    only the attributes and `release`.
    """

    event: Event
    epsilon: float
    delta: float
    name: str
    scale: float
    sensitivity: float

    def check_size(self, size):
        """Raise `ValueError` if `size` values cannot be released together."""

    def deviation(self, size):
        """Return the standard deviation of the noise in each of `size` values.

        Together, the values have sensitivity `sensitivity`. The result is `scale` times a factor
        that depends on the noise distribution, on the rounding to a grid, and on `size` if the
        noise is drawn by its norm.
        """

    def release(self, values, *, random_state=None):
        """Return the values with noise."""


def plan_for(make_plan, guarantee):
    """Return a plan that meets a guarantee, which may be a guarantee for a group of rows.

    Parameters
    ----------
    make_plan : callable
        Function that returns a plan for the `Guarantee` for one unit, a row or a person.
    guarantee : Guarantee

    Returns
    -------
    plan
        For a group of k rows, its noise is k times that for one row if the noise is Gaussian or
        delta is 0. Otherwise, the general bound for groups is used; see `Guarantee.per_row`.
    """
    if guarantee.neighbors.unit != "group":
        return make_plan(guarantee)
    group_size = guarantee.neighbors.max_rows
    row_guarantee = guarantee.per_row
    plan = make_plan(row_guarantee)
    if group_size > 1 and gaussian_mu(leaves(plan.event)) is not None:
        # Gaussian noise that is k times as large protects a group of k rows. This is less noise
        # than the general bound requires. The relative 1e-9 covers the rounding of the calibration.
        row_multiplier = gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta)
        noise_multiplier = group_size * row_multiplier * (1.0 + 1e-9)
        epsilon = get_epsilon(Gaussian(noise_multiplier), row_guarantee.delta)
        gaussian_plan = make_plan(replace(row_guarantee, epsilon=epsilon))
        group_epsilon = get_epsilon(gaussian_plan.event, guarantee.delta, group_size=group_size)
        if group_epsilon <= guarantee.epsilon:
            return gaussian_plan
    return plan


@dataclass(frozen=True)
class JointMechanism(FrozenValue):
    """Several mechanisms that one fit runs one after another on the same rows.

    They are charged together. The parameters of every mechanism are fixed before the first of them
    runs, so the tightest bound on their composition applies.

    Parameters
    ----------
    parts : tuple of mechanisms
        The mechanisms in the order in which they run.
    epsilon, delta : float
        The guarantee to which they were calibrated together. The accountant refuses an event that
        costs more.
    main : int, default=-1
        Index of the mechanism that `scale` and `sensitivity` describe.

    Attributes
    ----------
    event : skdp.accounting.Composed
        Privacy event of all mechanisms together.
    stages : tuple of Stage
        The stages of all mechanisms.

    Examples
    --------
    >>> from skdp.mechanisms import JointMechanism, LaplaceMechanism
    >>> bounds = LaplaceMechanism(0.25, sensitivity=1.0)
    >>> total = LaplaceMechanism(0.75, sensitivity=3.0)
    >>> round(JointMechanism((bounds, total), epsilon=1.0).scale, 6)
    4.0
    """

    parts: tuple
    epsilon: float = checked(check_epsilon)
    delta: float = checked(check_delta, default=0.0)
    main: int = -1

    def __post_init__(self):
        super().__post_init__()
        if not self.parts:
            raise ValueError("parts must contain at least one mechanism, got none")

    @property
    def stages(self) -> tuple:
        """The stages of all mechanisms, in order."""
        return tuple(stage for part in self.parts for stage in stages_of(part))

    @cached_property
    def event(self) -> Event:
        """Privacy event of all mechanisms together."""
        return Composed(tuple(part.event for part in self.parts))

    @property
    def name(self) -> str:
        """Names of the mechanisms, in order."""
        return ", then ".join(part.name for part in self.parts)

    @property
    def scale(self) -> float:
        """Noise scale of the main mechanism."""
        return self.parts[self.main].scale

    @property
    def sensitivity(self) -> float:
        """Sensitivity of the main mechanism."""
        return self.parts[self.main].sensitivity


@dataclass(frozen=True)
class NoRelease(FrozenValue):
    """The mechanism of a fit whose result depends only on public parameters.

    It is never charged. Its privacy statement has an epsilon of 0.

    Examples
    --------
    >>> from skdp.mechanisms import NoRelease
    >>> NoRelease().epsilon
    0.0
    """

    name: ClassVar[str] = "none: nothing is computed from the data"
    epsilon: ClassVar[float] = 0.0
    delta: ClassVar[float] = 0.0
    scale: ClassVar[float] = 0.0
    sensitivity: ClassVar[float] = 0.0
    event: ClassVar[Event] = Composed(())
    stages: ClassVar[tuple] = ()


def join_plans(plans, guarantee, main=None):
    """Return one plan, without a run, that charges several plans at once.

    Parameters
    ----------
    plans : sequence of plans, mechanisms or None
        The plans, in the order in which they run. Entries that are None are left out.
    guarantee : Guarantee
        The guarantee to which they were calibrated together.
    main : plan, default=None
        The plan whose noise the privacy statement describes first; None means the last one.

    Returns
    -------
    plan
        The plan itself if there is only one.
    """
    plans = [plan for plan in plans if plan is not None]
    if len(plans) == 1:
        return plans[0]
    if main is None:
        main = plans[-1]
    return Plan(
        name=", then ".join(plan.name for plan in plans),
        event=Composed(tuple(plan.event for plan in plans)),
        epsilon=guarantee.epsilon,
        delta=guarantee.delta,
        scale=main.scale,
        sensitivity=main.sensitivity,
        stages=tuple(stage for plan in plans for stage in stages_of(plan)),
        by_person=getattr(main, "by_person", True),
        mechanism=getattr(main, "mechanism", main),
    )


def vector_noise(guarantee, sensitivity):
    """Return the mechanism for a vector with known L2 sensitivity.

    Parameters
    ----------
    guarantee : Guarantee
        With delta = 0, the noise has a Gamma-distributed norm; with a positive delta, it is
        Gaussian.
    sensitivity : float
        L2 sensitivity under the guarantee's neighboring relation.

    Returns
    -------
    GammaNormMechanism or GaussianMechanism
    """
    if guarantee.delta == 0.0:
        return GammaNormMechanism(guarantee.epsilon, sensitivity)
    return GaussianMechanism(guarantee.epsilon, guarantee.delta, sensitivity)


def bounded_noise(guarantee, l1, l2=None):
    """Return the mechanism for values with known L1 and L2 sensitivities.

    Parameters
    ----------
    guarantee : Guarantee
        With delta = 0, the noise is Laplace noise; with a positive delta, it is Gaussian.
    l1 : float
        L1 sensitivity under the guarantee's neighboring relation.
    l2 : float, default=None
        L2 sensitivity. None means the square root of `l1`, rounded up, which holds for counts and
        for weights in [0, 1] whose sum changes by at most `l1`.

    Returns
    -------
    LaplaceMechanism or GaussianMechanism
    """
    if guarantee.delta == 0.0:
        return LaplaceMechanism(guarantee.epsilon, l1)
    if l2 is None:
        l2 = math.nextafter(math.sqrt(l1), math.inf)
    return GaussianMechanism(guarantee.epsilon, guarantee.delta, l2)


def counting_mechanism(l1_sensitivity, guarantee, *, whole=True, error=None):
    """Return the mechanism with the smallest error for counts.

    Parameters
    ----------
    l1_sensitivity : int
        Number of counts that one privacy unit changes by 1.
    guarantee : Guarantee
        With delta > 0, Gaussian noise is used if its error is smaller.
    whole : bool, default=True
        True if a row adds 0 or 1 to a count, so that counts are integers. Counts of persons are
        weighted and not integers. Rounding them could change each of many counts by 1.
    error : callable, default=None
        Function that returns the error of a mechanism, which is minimized; None means the mean
        error.

    Returns
    -------
    GeometricMechanism, LaplaceMechanism or GaussianMechanism
    """

    def mean_error(mechanism):
        return mechanism.mean_error(1)

    if whole and guarantee.neighbors.unit != "person":
        candidates = [GeometricMechanism(guarantee.epsilon, l1_sensitivity)]
    else:
        candidates = [LaplaceMechanism(guarantee.epsilon, l1_sensitivity)]
    if guarantee.delta > 0.0:
        candidates.append(bounded_noise(guarantee, l1_sensitivity))
    return min(candidates, key=error or mean_error)


def noise_of_cell_weights(n_columns, guarantee, *, whole):
    """Return the mechanism for counts of categories, or sums of weights or targets by category.

    A row adds non-negative weights that sum to 1 to the cells of each column, or nothing. Between
    neighbors, the cells of all columns change by m n_columns in L1 norm and by sqrt(m n_columns) in
    L2 norm, with m = 1 under add/remove and 2 under replace-one. The sums of weights must be exact.

    Parameters
    ----------
    n_columns : int
    guarantee : Guarantee
        With delta > 0, the noise is Gaussian, so that a fit always uses the delta that it states.
    whole : bool
        True if the weights of a row are 0 or 1.

    Returns
    -------
    GeometricMechanism, LaplaceMechanism or GaussianMechanism
    """
    l1_sensitivity = guarantee.neighbors.sensitivity_factor * n_columns
    if guarantee.delta > 0.0:
        return bounded_noise(guarantee, l1_sensitivity)
    return counting_mechanism(l1_sensitivity, guarantee, whole=whole)
