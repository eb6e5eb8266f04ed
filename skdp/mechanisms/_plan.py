"""What a release is, known before it sees a table: plans, and mechanisms, the smallest of them."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from skdp.accounting import Composed, Event, Gaussian, Guarantee, get_epsilon
from skdp.accounting._events import gaussian_mu, leaves
from skdp.accounting._gaussian import gaussian_noise_multiplier
from skdp.mechanisms._gaussian import GammaNormMechanism, GaussianMechanism
from skdp.mechanisms._laplace import GeometricMechanism, LaplaceMechanism
from skdp.mechanisms._stages import UNNAMED, one_stage, sampler_of, stages_of
from skdp.utils._validation import check_delta, check_epsilon
from skdp.utils._values import FrozenValue, checked


class Plan(Protocol):
    """What a fit will release, made from parameters and from what of the table is public.

    An estimator's ``plan_fit(shape, guarantee)`` returns one; `PrivateFit.charge` books it and
    ``run(table, source)`` makes the release, with noise from the source that the charge gave, and
    from no other. A mechanism is the smallest plan: its run is `release`.

    Attributes
    ----------
    event : Event
        What it does, for the accountant.
    epsilon, delta : float
        What it was calibrated to.
    name : str
        In words.
    scale, sensitivity : float
        Of its noise, and of what the noise is added to.

    Notes
    -----
    A plan may also have `sparse_output`, whether a transformer makes sparse matrices, `stages`,
    the releases that it consists of (a plan without them is one release), and `by_person`, whether
    its run takes `persons`, whose shares the rows then have, so that a person moves what is
    released by no more than a row would.
    """

    event: object
    epsilon: float
    delta: float
    name: str
    scale: float
    sensitivity: float


class Mechanism(Plan, Protocol):
    """The smallest plan: noise that is added to a vector; its run is `release`.

    Whoever needs to know how precise a release is asks the mechanism. Nobody guesses the law of the
    noise from delta or from a type.

    Notes
    -----
    Mechanisms whose noise is independent in each value (Laplace, Gaussian, geometric) also have
    ``mean_error(size)``, its mean magnitude, and ``tail(probability, size, terms)``, what it, or a
    sum of `terms` of it, exceeds with at most that probability. A choice among candidates and
    randomized response add no noise to a vector, and have `release` alone.
    """

    def check_size(self, size):
        """Raise `ValueError` if so many values cannot be released together."""

    def deviation(self, size):
        """Return the standard deviation of the noise in each of `size` values.

        Their joint sensitivity is `sensitivity`. It is `scale` times a factor that depends on the
        law, on `size` if the noise is that of a vector's norm, and on the rounding to a grid.
        """

    def release(self, values, *, random_state=None):
        """Return the values with noise."""


@dataclass(frozen=True, eq=False)
class PlanValue(FrozenValue):
    """A plan that was calibrated to its `guarantee`; see `Plan`.

    A subclass is decorated by ``@dataclass(frozen=True, kw_only=True, eq=False)``: a plan may hold
    arrays, so it is equal to itself only. Those that are compared leave ``eq=False`` out.
    """

    @property
    def epsilon(self):
        return self.guarantee.epsilon

    @property
    def delta(self):
        return self.guarantee.delta

    # What is released, in words, where a subclass knows it.
    released = UNNAMED

    @property
    def stages(self):
        """The releases of which it consists: here one."""
        return (one_stage(self, self.released),)

    @property
    def sampler(self):
        """Which rows its stages read, in words."""
        return sampler_of(self.stages)


@dataclass(frozen=True, kw_only=True, eq=False)
class MechanismPlan(PlanValue):
    """A plan whose price and noise are those of its `mechanism`; see `Plan`.

    Attributes
    ----------
    mechanism : plan
        What is charged.
    sparse_output : bool
        Whether a transformer makes sparse matrices.
    by_person : bool
        Whether `run` takes `persons`.
    """

    sparse_output = False
    by_person = False

    @property
    def event(self):
        return self.mechanism.event

    @property
    def epsilon(self):
        return self.mechanism.epsilon

    @property
    def delta(self):
        return self.mechanism.delta

    @property
    def scale(self):
        return self.mechanism.scale

    @property
    def sensitivity(self):
        return self.mechanism.sensitivity

    @property
    def name(self):
        return self.mechanism.name

    @property
    def stages(self):
        """The stages of what is charged."""
        return stages_of(self.mechanism, self.released)

    def check_size(self, size):
        self.mechanism.check_size(size)


@dataclass(frozen=True, kw_only=True)
class Price(PlanValue):
    """A plan's price alone, and the noise that it is the price of; see `Plan`.

    Parameters
    ----------
    name : str
    event : Event
    guarantee : Guarantee
    scale, sensitivity : float
        Of the noise that a statement describes.
    """

    name: str
    event: Event
    guarantee: Guarantee
    scale: float
    sensitivity: float


def plan_for(make_plan, guarantee):
    """Return a plan that meets a guarantee: for a group of rows a plan for one, with more noise.

    Parameters
    ----------
    make_plan : callable
        Of a `Guarantee` for one unit: a row, or a person.
    guarantee : Guarantee

    Returns
    -------
    plan
        For k rows its noise is k times that for one where it is Gaussian, or delta is 0; otherwise
        the general bound on groups holds, see `Guarantee.per_row`.
    """
    k = guarantee.neighbors.max_rows
    row = guarantee.per_row
    plan = make_plan(row)
    if k > 1 and gaussian_mu(leaves(plan.event)) is not None:
        noise = k * gaussian_noise_multiplier(guarantee.epsilon, guarantee.delta) * (1.0 + 1e-9)
        exact = make_plan(replace(row, epsilon=get_epsilon(Gaussian(noise), row.delta)))
        if get_epsilon(exact.event, guarantee.delta, group_size=k) <= guarantee.epsilon:
            return exact
    return plan


@dataclass(frozen=True)
class JointMechanism(FrozenValue):
    """Several mechanisms that one fit runs one after another on the same rows.

    It goes to the accountant as one charge. The parameters of every part are fixed before the
    first of them runs, so that the tightest bound on their composition applies.

    Parameters
    ----------
    parts : tuple of mechanisms
        In the order in which they run.
    epsilon, delta : float
        What the parts together were calibrated to; the accountant refuses an event that costs
        more.
    main : int, default=-1
        The place of the part that `scale` and `sensitivity` describe.

    Attributes
    ----------
    event : skdp.accounting.Composed
        What all parts cost together.
    stages : tuple of Stage
        Those of all parts.

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
            raise ValueError("parts must not be empty")

    @property
    def stages(self) -> tuple:
        """The stages of all parts, in order."""
        return tuple(stage for part in self.parts for stage in stages_of(part))

    @property
    def event(self) -> Event:
        """What all parts cost together."""
        return Composed(tuple(part.event for part in self.parts))

    @property
    def name(self) -> str:
        """The parts' names, in order."""
        return ", then ".join(part.name for part in self.parts)

    @property
    def scale(self) -> float:
        """The noise scale of the main part."""
        return self.parts[self.main].scale

    @property
    def sensitivity(self) -> float:
        """The sensitivity of the main part."""
        return self.parts[self.main].sensitivity


@dataclass(frozen=True)
class NoRelease(FrozenValue):
    """The mechanism of a fit whose outcome follows from public parameters alone.

    It is never charged; a privacy statement describes it with an epsilon of 0.

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


def one_charge(parts, guarantee, main=None):
    """Return the only one of some mechanisms, or all of them as one.

    Parameters
    ----------
    parts : sequence of plans or None
        In the order in which they run; None where there is none.
    guarantee : Guarantee
        What they were calibrated to, together.
    main : plan, default=None
        The part whose noise a statement describes first; None is the last one.

    Returns
    -------
    plan
    """
    parts = tuple(part for part in parts if part is not None)
    if len(parts) == 1:
        return parts[0]
    place = next((i for i, part in enumerate(parts) if part is main), -1)
    return JointMechanism(parts, guarantee.epsilon, guarantee.delta, place)


def vector_noise(guarantee, sensitivity):
    """Return the mechanism for a vector of known L2 sensitivity.

    Parameters
    ----------
    guarantee : Guarantee
        delta = 0 takes noise with a Gamma-distributed norm, a positive one Gaussian noise.
    sensitivity : float
        Under the guarantee's neighbors.

    Returns
    -------
    GammaNormMechanism or GaussianMechanism
    """
    if guarantee.delta == 0.0:
        return GammaNormMechanism(guarantee.epsilon, sensitivity)
    return GaussianMechanism(guarantee.epsilon, guarantee.delta, sensitivity)


def bounded_noise(guarantee, l1, l2=None):
    """Return the mechanism for values of known L1 and L2 sensitivities.

    Parameters
    ----------
    guarantee : Guarantee
        delta = 0 takes Laplace noise, a positive one Gaussian noise.
    l1 : float
        Under the guarantee's neighbors.
    l2 : float, default=None
        None is the root of `l1`, rounded up: that of counts, or of weights whose sum is `l1`.

    Returns
    -------
    LaplaceMechanism or GaussianMechanism
    """
    if guarantee.delta == 0.0:
        return LaplaceMechanism(guarantee.epsilon, l1)
    if l2 is None:
        l2 = math.nextafter(math.sqrt(l1), math.inf)
    return GaussianMechanism(guarantee.epsilon, guarantee.delta, l2)


def counting_mechanism(moved, guarantee, *, whole=True, error=None):
    """Return the mechanism of least error for counts of which a unit moves `moved` by one.

    Parameters
    ----------
    moved : int
    guarantee : Guarantee
        With delta > 0 noise is Gaussian where that is the smaller.
    whole : bool, default=True
        Whether a row counts 0 or 1. Counts by shares, as of persons, are no whole numbers:
        rounded, those of many places could move by one each.
    error : callable, default=None
        What is to be small, of a mechanism; None is the mean error.

    Returns
    -------
    GeometricMechanism, LaplaceMechanism or GaussianMechanism
    """
    whole = whole and guarantee.neighbors.unit != "person"
    choices = [(GeometricMechanism if whole else LaplaceMechanism)(guarantee.epsilon, moved)]
    if guarantee.delta > 0.0:
        choices.append(bounded_noise(guarantee, moved))
    return min(choices, key=error or (lambda mechanism: mechanism.mean_error(1)))


def plan_cell_weights(n_columns, guarantee, *, whole):
    """Plan noise on the cells of the tables of `n_columns` columns.

    A row adds weights of at least 0 that sum to 1, or nothing, to each table: m n_columns in L1
    norm and sqrt(m n_columns) in L2 norm between neighbors, with m = 1 under add/remove and 2
    under replace-one. The weights' sums must be exact.

    Parameters
    ----------
    n_columns : int
    guarantee : Guarantee
        With delta > 0 noise is Gaussian: a fit then costs the delta that it names.
    whole : bool
        Whether the weights of a row are 0 or 1.

    Returns
    -------
    GeometricMechanism, LaplaceMechanism or GaussianMechanism
    """
    moved = guarantee.neighbors.sensitivity_factor * n_columns
    if guarantee.delta > 0.0:
        return bounded_noise(guarantee, moved)
    return counting_mechanism(moved, guarantee, whole=whole)
