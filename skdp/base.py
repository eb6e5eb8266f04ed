"""The life of a private fit: read, plan, charge, run, publish.

The `fit` of every private estimator takes these steps in this order::

    with private_fit(self) as fit:
        table = fit.read(X, y, groups=groups)
        plan = self.plan_fit(table.shape, fit.guarantee)
        released = fit.run(plan, table)
        fit.publish(plan, mean_=released.mean)
    return self

1. **Read**: `PrivateFit.read` validates the table. Nothing is computed from values.
2. **Plan**: `plan_fit` returns the plan of the release, from the parameters and from the public
   shape of the table alone.
3. **Charge and run**: `PrivateFit.run` writes the plan's event in the ledger and makes the release,
   with noise from the only source from which it can be drawn.
4. **Publish**: `PrivateFit.publish` sets the fitted attributes and the privacy statement.

`private_release` is the same context without an estimator, for functions that release a value.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import ClassVar, Concatenate

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._data._answers import partitionwise
from skdp._data._clipping import clip_features, clip_rows
from skdp._data._columns import check_readable, names_for_keys, non_positional_labels
from skdp._data._dask import Run
from skdp._data._kinds import known_kinds
from skdp._data._lengths import check_lengths, computed_column, opened_table
from skdp._data._output import check_output_setting
from skdp._data._persons import read_persons
from skdp._data._sums import exact_counts, exact_sum, sum_grid
from skdp._data._tables import RowsAndTarget, TableShape, read_array, read_target
from skdp._fitting._arguments import fitted_names, forget_fitted, without_weights
from skdp._fitting._callbacks import CallbackSupportMixin, with_callbacks
from skdp._fitting._callers import (
    check_callers,
    is_judged_before_copies,
    is_of_plan,
    is_sent_to_workers,
)
from skdp._fitting._findings import collect_findings, report_declared_identifiers, warn_of_findings
from skdp._fitting._fit_progress import FitProgress
from skdp._privacy_statement import CENTRAL, PrivacyStatement
from skdp._version import __version__
from skdp.accounting import Composed, Guarantee
from skdp.exceptions import LedgerError, RawDataWarning
from skdp.ledger import Allowance, PrivacyAccountant
from skdp.ledger._report import (
    describe_composition,
    describe_part,
    describe_relation,
    describe_unit,
)
from skdp.ledger._state import Charge, LedgerConfig
from skdp.mechanisms._plan import plan_for
from skdp.mechanisms._stages import sampler_of, stages_of
from skdp.mechanisms._unknown_shape import plan_unknown_shape
from skdp.noise import NoiseGuard, RandomSource
from skdp.noise._source import check_seed, is_inside_release
from skdp.utils._types import P, R, S
from skdp.utils._units import for_unit
from skdp.utils._validation import has_auto, public_inputs
from skdp.utils._values import FrozenValue

__all__ = [
    "DEFAULT_CONFIG",
    "EMPTY_EVENT",
    "GROUPS_WITHOUT_PERSON_UNIT",
    "PrivateEstimator",
    "PrivateFit",
    "PrivateRelease",
    "ReadTable",
    "TableEstimator",
    "TableShape",
    "clip_features",
    "clip_rows",
    "exact_counts",
    "exact_sum",
    "fitted_names",
    "guarantee_of",
    "neighbors_of",
    "plans_for_groups",
    "private_answer",
    "private_fit",
    "private_fit_method",
    "private_release",
    "raw_data_policy",
    "read_array",
    "relation_of",
    "row_wise_answer",
    "sum_grid",
    "terms_of",
]

# Configuration of a fit without an accountant: it protects one row that is added or removed. Its
# budget has no effect, since nothing is charged.
DEFAULT_CONFIG = LedgerConfig(1.0, 0.0)
# The event of a plan that releases nothing, such as a plan of declared bounds. It is not charged.
EMPTY_EVENT = Composed(())


def relation_of(accountant):
    """Return the neighboring relation of an accountant, "add_remove" if it is None."""
    return terms_of(accountant).relation


def terms_of(accountant):
    """Return the configuration of an accountant: its relation, privacy unit and composition.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        None protects one row that is added or removed.

    Returns
    -------
    LedgerConfig

    Raises
    ------
    ValueError
        If `accountant` is neither None nor an accountant.
    """
    if accountant is None:
        return DEFAULT_CONFIG
    if not hasattr(accountant, "charge"):
        raise ValueError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    return accountant.config


def raw_data_policy(config):
    """Return "warn" or "raise": the reaction to a tool that computes from the raw rows."""
    return getattr(config, "on_raw_data", "warn")


def _check_callers_of(estimator, occasion):
    """Check the tools that call a private estimator for computations on the raw rows.

    The check at a fit does not see every tool: some tools fit the estimator in another thread, or
    use an already fitted estimator. So the check is repeated when the estimator is cloned and when
    it predicts or transforms.

    Parameters
    ----------
    estimator : estimator
    occasion : {"clone", "answer"}

    Returns
    -------
    bool
        True if a plan around the estimator checked its steps.
    """
    accountant = getattr(estimator, "accountant", None)
    # The callers of an outer release were checked when that release began.
    if is_inside_release() or isinstance(accountant, Allowance):
        return False

    def policy():
        try:
            return raw_data_policy(terms_of(accountant))
        except (LedgerError, ValueError):
            # A fitted model predicts even if its ledger cannot be opened. `fit` refuses an invalid
            # accountant.
            return "warn"

    return check_callers(estimator, policy, occasion)


def neighbors_of(accountant, config=None):
    """Return the neighboring datasets of a fit's guarantee.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        None means datasets that differ by one added or removed row.
    config : LedgerConfig, default=None
        The accountant's configuration, if it was read before.

    Returns
    -------
    Neighbors
        For a step of a planned pipeline, neighbors by one row, because the plan's cost already
        covers a group of rows.
    """
    neighbors = (terms_of(accountant) if config is None else config).neighbors
    return neighbors.per_row if hasattr(accountant, "planned") else neighbors


def guarantee_of(estimator):
    """Return the guarantee that a fit of an estimator must meet.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameters `epsilon` and `accountant`. Without a parameter `delta`, delta
        is 0.

    Returns
    -------
    Guarantee

    Raises
    ------
    ValueError
        If epsilon or delta is out of range.
    """
    params = estimator.get_params(deep=False)
    return Guarantee(
        epsilon=params["epsilon"],
        delta=params.get("delta", 0.0),
        neighbors=neighbors_of(params["accountant"]),
    )


def dataset_of(accountant):
    """Return the name of the data set that an accountant charges for, "" without an accountant."""
    return getattr(accountant, "dataset", "") or ""


def _holds_dates(value):
    """Return True if a parameter is or contains a pandas Timestamp without a time zone."""
    if isinstance(value, dict):
        return any(map(_holds_dates, value.values()))
    if type(value) in (list, tuple):
        return any(map(_holds_dates, value))
    return hasattr(value, "to_datetime64") and getattr(value, "tzinfo", None) is None


def _with_numpy_dates(value):
    """Return a parameter with its pandas Timestamps replaced by NumPy datetimes."""
    if isinstance(value, dict):
        return {key: _with_numpy_dates(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_with_numpy_dates, value))
    return value.to_datetime64() if _holds_dates(value) else value


def _describe_composition_of(accountant, config):
    """Return a description of how a fit's cost adds to the cost of others."""
    if accountant is None:
        return "none"
    plan = getattr(accountant, "plan", None)
    description = describe_composition(config.composition)
    return description if plan is None else f"{plan}; {description}"


GROUPS_WITHOUT_PERSON_UNIT = (
    "groups were passed, so that the privacy unit is a person, but the accountant's unit is a "
    "{unit}: open a ledger with unit='person', or leave groups out"
)


def private_fit_method(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorate `fit` or `partial_fit` of a private estimator.

    The method refuses every `sample_weight` except None, leaves the estimator unfitted if its
    arguments are wrong, and runs the callbacks of scikit-learn (version 1.9 and later).

    Parameters
    ----------
    fit : callable
        The method ``fit(self, X, y, *, groups=None)``.

    Returns
    -------
    callable
    """
    return with_callbacks(without_weights(fit))


def plans_for_groups(plan_fit):
    """Decorate `plan_fit` so that it also handles groups of rows and unknown shapes.

    The decorated method is written for one row and a known shape. For a guarantee on groups of
    `max_rows` rows, the plan has the noise that a group needs. Where the number of rows or columns
    is None, the plan's event holds for every shape.

    Parameters
    ----------
    plan_fit : callable
        The method ``plan_fit(self, shape, guarantee)``.

    Returns
    -------
    callable
    """

    @wraps(plan_fit)
    def plan_for_units(self, shape, guarantee, **options):
        def plan_known_shape(shape):
            return plan_for(partial(plan_fit, self, shape, **options), guarantee)

        if shape.n_rows is None or shape.n_columns is None:
            params = self.get_params(deep=False)
            return plan_unknown_shape(plan_known_shape, params, shape, guarantee)
        return plan_known_shape(shape)

    return plan_for_units


def private_answer(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method of a fitted estimator that predicts or transforms samples.

    NumPy's warnings are suppressed, since an overflow would reveal the size of a value. The tools
    that call the method are checked for computations on the raw rows.

    Parameters
    ----------
    method : callable
        The method ``transform(self, X)``, ``predict(self, X)`` or the like.

    Returns
    -------
    callable
    """

    @wraps(method)
    def answer(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        _check_callers_of(self, "answer")
        with np.errstate(all="ignore"):
            return method(self, *args, **kwargs)

    return answer


def row_wise_answer(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method that computes the output of each row from that row alone.

    It does what `private_answer` does. In addition, the outputs for a table in partitions are
    computed partition by partition.

    Parameters
    ----------
    method : callable
        The method ``transform(self, X)``, ``predict(self, X)`` or the like.

    Returns
    -------
    callable
    """
    return private_answer(partitionwise(method))


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadTable(FrozenValue):
    """The rows of a fit after validation, with their public shape.

    Parameters
    ----------
    rows : object
        The rows in the form that the estimator's plan expects.
    shape : TableShape
        The public facts about the rows.
    """

    rows: object
    shape: TableShape

    @property
    def X(self):
        """The rows without their labels or targets."""
        return self.rows.X if isinstance(self.rows, RowsAndTarget) else self.rows

    @property
    def y(self):
        """The labels or targets of the rows, or None."""
        return self.rows.y if isinstance(self.rows, RowsAndTarget) else None

    def with_n_units(self, n_units):
        """Return the table with the public number of privacy units, rows or persons."""
        return replace(self, shape=replace(self.shape, n_rows=n_units))


def _read_numbers(estimator, X, y=None):
    """Return the `ReadTable` of finite numbers, and of labels or targets if y is passed."""
    X = opened_table(X)
    rows = read_array(estimator, X, dtype=np.float64)
    names = names_for_keys(estimator)
    kinds = known_kinds(X)
    shape = TableShape(n_rows=rows.shape[0], n_columns=rows.shape[1], names=names, kinds=kinds)
    if y is not None or get_tags(estimator).target_tags.required:
        rows = RowsAndTarget(rows, read_target(estimator, y, len(rows)))
    return ReadTable(rows=rows, shape=shape)


class PrivateEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class of private estimators.

    A subclass has at least the parameters `epsilon`, `accountant` and `random_state`, and a
    constructor as scikit-learn requires. It defines

    - ``fit(X, y=None, *, groups=None)``, decorated by `private_fit_method`, whose body is a
      `private_fit`;
    - ``plan_fit(shape, guarantee)``, decorated by `plans_for_groups`, which returns the plan;
    - methods that predict or transform, decorated by `row_wise_answer` or `private_answer`.

    It may override ``_read_table(X, y)``, which validates the data and returns a `ReadTable`;
    ``_check_rows(rows, plan)``, which refuses values that the plan cannot process; and
    ``_assumptions()``, the facts that are assumed to be public. An estimator counts as fitted once
    it has a privacy statement.

    Examples
    --------
    >>> from skdp.base import PrivateEstimator
    >>> class DPMedian(PrivateEstimator):
    ...     def __init__(self, epsilon=1.0, *, accountant=None, random_state=None):
    ...         self.epsilon = epsilon
    ...         self.accountant = accountant
    ...         self.random_state = random_state
    >>> DPMedian(0.5, random_state=0)
    DPMedian(epsilon=0.5, random_state=0)
    """

    # Parameters of every private estimator.
    epsilon: float
    accountant: PrivacyAccountant | None
    random_state: int | None

    # True if a fit releases nothing when its parameters declare everything. Pipelines read it.
    _may_release_nothing = False
    # Names of the parameters that make the charge depend on the table's shape if they are "auto".
    # None if the charge depends on the shape in any case.
    _shape_dependent_if_auto: ClassVar[tuple[str, ...] | None] = None

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")

    def __getstate__(self):
        # skops, which mlflow uses to store models, cannot load a pandas Timestamp.
        replaced = {
            name: _with_numpy_dates(value)
            for name, value in self.get_params(deep=False).items()
            if _holds_dates(value)
        }
        if is_sent_to_workers():
            # A worker process does not see the tool that calls it from this process.
            try:
                if _check_callers_of(self, "clone"):
                    replaced["_is_sent_by_plan"] = True
            except (ValueError, RawDataWarning) as error:
                # joblib would hide an error while pickling, so the worker raises it.
                replaced["_refusal"] = error
        state = super().__getstate__() | replaced
        if not replaced.get("_is_sent_by_plan"):
            # A fitted model that returns from a worker process is not in that plan any more.
            state.pop("_is_sent_by_plan", None)
        return state

    def __sklearn_clone__(self):
        _check_callers_of(self, "clone")
        copied = super().__sklearn_clone__()
        if is_of_plan(self):
            copied._is_sent_by_plan = True
        return copied

    def __sklearn_tags__(self):
        # scikit-learn's tools read the tags just before they read the folds of a generator, and of
        # frozen estimators.
        if is_judged_before_copies(self, is_fitted=hasattr(self, "privacy_")):
            _check_callers_of(self, "clone")
        return super().__sklearn_tags__()

    def _charge_needs_no_shape(self):
        """Return True if a fit charges the same for tables of every shape."""
        names = self._shape_dependent_if_auto
        return names is not None and not any(has_auto(getattr(self, name, None)) for name in names)

    def get_metadata_routing(self):
        """Return the metadata that `fit` requests: `groups` if the privacy unit is a person.

        A request by ``set_fit_request`` takes precedence.

        Returns
        -------
        MetadataRequest
        """
        routing = super().get_metadata_routing()
        try:
            unit_is_person = terms_of(getattr(self, "accountant", None)).unit == "person"
        except LedgerError:
            # A fitted model predicts even if its ledger cannot be opened. A fit raises the error.
            unit_is_person = True
        for method in (routing.fit, routing.partial_fit):
            if method.requests.get("groups", False) is None:
                method.add_request(param="groups", alias=unit_is_person)
        return routing

    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. Where the
            number of rows or columns is None, the plan's event holds for every shape. Parameters
            that need no shape are checked then, too.
        guarantee : Guarantee
            Guarantee that the fit must meet; `epsilon`, `delta` and `accountant` are not read.

        Returns
        -------
        Plan
            Made from public information only: no data, no charge, no noise.

        Raises
        ------
        ValueError
            If `fit` would refuse a parameter.
        """
        raise NotImplementedError(f"{type(self).__name__} has no method plan_fit")

    def _read_table(self, X, y=None):
        """Return the validated rows of a fit, a `ReadTable`.

        Unless a subclass overrides it, rows are finite numbers in double precision.
        """
        return _read_numbers(self, X, y)

    def _check_rows(self, rows, plan):
        """Raise `ValueError` if the plan cannot process a value of the rows."""

    def _assumptions(self):
        """Return descriptions of the facts that a fit assumes to be public."""
        return public_inputs(self)

    def _dry_run(self, X, y=None, groups=None, *, n_units=None):
        """Run a fit up to its charge, which is made to an allowance without a ledger.

        Parameters
        ----------
        X, y, groups
            As in `fit`. The estimator's accountant is an allowance without a ledger.
        n_units : int, default=None
            The number of privacy units to plan for; None counts the units of the table.
        """
        with PrivateFit(self) as fit:
            table = fit.read(X, y, groups=groups)
            if n_units is not None:
                table = table.with_n_units(n_units)
            plan = self.plan_fit(table.shape, fit.guarantee)
            fit.check_table(plan, table)
            fit.charge(plan)

    def _shape_of(self, rows, **more):
        """Return the `TableShape` of validated rows."""
        names = names_for_keys(self)
        return TableShape(n_rows=rows.shape[0], n_columns=rows.shape[1], names=names, **more)


class TableEstimator(PrivateEstimator):
    """Base class of estimators that read rows, and then predict or transform rows of this kind.

    A subclass defines ``_read(X, reset)``, which validates rows. A predictor also defines
    ``_read_target(y, n_rows)``, which returns the class labels (None in a regressor) and the codes
    or targets of the rows.
    """

    # Input tags of scikit-learn for accepted data other than dense tables of numbers.
    _accepts: ClassVar[tuple[str, ...]] = ()
    # Names of the parameters that declare public facts about the rows; each subclass sets it.
    _public: ClassVar[tuple[str, ...]]
    # Further facts about the rows that a fit assumes to be public, as text.
    _also_public: ClassVar[tuple[str, ...]] = ()

    def _read_table(self, X, y=None, reset=True, **declared):
        # A partitioned table declares its types only after it was opened.
        X = opened_table(X)
        rows = self._read(X, reset=reset)
        classes, y = self._read_target(y, rows.shape[0], **declared)
        shape = self._shape_of(rows, classes=classes, kinds=known_kinds(X))
        return ReadTable(rows=rows if y is None else RowsAndTarget(rows, y), shape=shape)

    def _read_target(self, y, n_rows):
        return None, None

    def _assumptions(self):
        """Return descriptions of the facts that a fit assumes to be public."""
        return (*public_inputs(self, *self._public), *self._also_public)

    def _read_samples(self, X):
        """Return validated samples to predict or transform."""
        check_is_fitted(self)
        return self._read(X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        for tag in self._accepts:
            setattr(tags.input_tags, tag, True)
        return tags


def private_release(label, accountant=None, random_state=None):
    """Return the context of one private release that is not the fit of an estimator.

    Parameters
    ----------
    label : str
        Name of the release, for the ledger.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged. With None nothing is recorded.
    random_state : int or None, default=None
        Seed of the noise; None draws it from the operating system.

    Returns
    -------
    PrivateRelease

    Examples
    --------
    >>> from skdp.base import private_release
    >>> from skdp.mechanisms import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    >>> with private_release("a sum") as release:
    ...     source = release.charge(mechanism)
    ...     noisy = mechanism.release(17.0, random_state=source)
    """
    return PrivateRelease(label=label, accountant=accountant, random_state=random_state)


def private_fit(estimator, n_tasks=None):
    """Return the context of one private fit of an estimator.

    Parameters
    ----------
    estimator : estimator
        It has the parameters `accountant` and `random_state`, and `epsilon` unless it makes its
        guarantee itself.
    n_tasks : int, default=None
        Number of stages that the fit reports to scikit-learn's callbacks; None if unknown.

    Returns
    -------
    PrivateFit
    """
    return PrivateFit(estimator, FitProgress(estimator, n_tasks))


class PrivateRelease:
    """Context of one charge and of the noise that is added for it; see `private_release`.

    Inside it, noise can be drawn only from the source that `charge` returns, so a release that is
    not in the ledger cannot be made. A second charge raises. Data are checked to be finite
    regardless of scikit-learn's ``assume_finite``, and NumPy's warnings, which may reveal the size
    of a value, are suppressed.

    Parameters
    ----------
    label : str
        Name of the estimator or function, for the ledger.
    accountant : PrivacyAccountant or None
        The accountant that is charged.
    random_state : int or None
        Seed of the noise; None draws it from the operating system.
    """

    def __init__(self, *, label, accountant, random_state):
        self._label = label
        self._accountant = accountant
        self._random_state = random_state
        # A charge was tried, whether or not the accountant accepted it.
        self._is_charge_tried = False
        self._is_charged = False
        # The plan released nothing, so that there is no entry in the ledger.
        self._is_free = False
        # The ids of persons, if these are the privacy unit.
        self._persons = None
        # The guarantee of the whole group, if the unit is a group of rows.
        self._group_guarantee = None
        self.ledger_entry = None

    def __enter__(self):
        # Also where no noise will be drawn: a wrong parameter is refused for every table.
        check_seed(self._random_state)
        # `_open_config` refuses a closed data set before its rows are read.
        read_config = getattr(self._accountant, "_open_config", partial(terms_of, self._accountant))
        self._config = read_config()
        self._check_callers()
        with ExitStack() as settings:
            # Without this check, one row that is not finite makes a fit fail after its charge.
            settings.enter_context(config_context(assume_finite=False))
            # scikit-learn's checks sum the values: a warning would reveal an overflow.
            settings.enter_context(np.errstate(all="ignore"))
            self._noise_guard = settings.enter_context(NoiseGuard())
            settings.enter_context(Run())
            self._findings = settings.enter_context(collect_findings())
            self._settings = settings.pop_all()
        return self

    def __exit__(self, kind, error, traceback):
        self._settings.__exit__(kind, error, traceback)
        # Warnings come last: if one is turned into an error, the released values are not lost.
        if kind is None and self._is_released:
            warn_of_findings(self._label, self._findings, self._column_names)

    # Names of the table's columns, for warnings.
    _column_names = None

    @property
    def _is_released(self):
        """True if noisy values may have been returned to the user."""
        return self._is_charged

    def _check_callers(self):
        """Check the tools around the release; only `PrivateFit` has something to check."""

    @property
    def terms(self):
        """Configuration of the accountant; the unit is a person if `groups` were read."""
        return replace(self._config, unit="person") if self._persons else self._config

    def cost_of(self, plan):
        """Return the plan or guarantee whose `epsilon` and `delta` are charged for a plan.

        A plan for a group of rows has the epsilon of one row. The group's is charged.
        """
        if plan.event == EMPTY_EVENT or self._group_guarantee is None:
            return plan
        return self._group_guarantee

    def make_guarantee(self, epsilon, delta):
        """Return the `Guarantee` of the privacy unit that the next charge is for."""
        neighbors = neighbors_of(self._accountant, self.terms)
        guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)
        self._group_guarantee = guarantee if neighbors.max_rows > 1 else None
        return guarantee

    @property
    def run_params(self):
        """Arguments of a plan's `run` besides rows and noise: `persons`, if these are the unit."""
        return {"persons": self._persons} if self._persons else {}

    def read_groups(self, groups, n_rows):
        """Read the person id of each row and return the number of privacy units.

        Parameters
        ----------
        groups : array-like of shape (n_rows,) or None
            None leaves rows as the unit.
        n_rows : int

        Returns
        -------
        int
            The number of rows, or with `groups` of persons.

        Raises
        ------
        ValueError
            If the accountant's unit is not a person, or `groups` are not valid ids.
        """
        unit = self._config.unit
        if groups is None:
            return n_rows
        if self._accountant is not None and unit != "person":
            raise ValueError(GROUPS_WITHOUT_PERSON_UNIT.format(unit=unit))
        self._persons = read_persons(groups, n_rows, self._config.missing_ids)
        return self._persons.n_persons

    def check_plan(self, plan):
        """Raise `ValueError` if a plan cannot be run or published; called before the charge."""
        if self.terms.unit != "person":
            return
        if self._persons is None:
            raise ValueError(
                "groups are missing, but the accountant's unit is a person: pass groups, the "
                "person id of each row. A Pipeline or ColumnTransformer passes them on after "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
        if not getattr(plan, "by_person", False):
            raise ValueError(
                f"{self._label} with these parameters has no release whose unit is a person: "
                "leave groups out, and use an accountant with unit='row' or unit='group'"
            )

    def charge(self, plan, size=None):
        """Charge the plan's event and return the source of its noise.

        Parameters
        ----------
        plan : Plan
            It has `event`, `epsilon` and `delta`. A plan that releases nothing is not charged.
        size : int, default=None
            Number of values that an additive mechanism will release together. If it is passed, the
            plan is first checked to support that many.

        Returns
        -------
        RandomSource or None
            None for a plan that releases nothing.

        Raises
        ------
        RuntimeError
            If there was a charge before, accepted or refused.
        ValueError
            If epsilon is too small for this number of values, a transformer's output does not fit
            into the configured container, or the plan does not support persons.
        BudgetExceededError
            If the budget does not cover the charge.
        """
        if self._is_charge_tried:
            raise RuntimeError(
                "a private fit charges once: combine its releases in one plan "
                "(skdp.mechanisms.JointMechanism)"
            )
        if size is not None:
            plan.check_size(size)
        self.check_plan(plan)
        self._is_charge_tried = True
        if plan.event == EMPTY_EVENT:
            self._is_charged = self._is_free = True
            return None
        source = RandomSource(self._random_state)
        if self._accountant is not None:
            cost = self.cost_of(plan)
            self.ledger_entry = self._accountant.charge(
                plan.event,
                epsilon=cost.epsilon,
                delta=cost.delta,
                label=self._label,
                seeded=source.seeded,
            )
        self._is_charged = True
        self._noise_guard.source = source
        return source


class PrivateFit(PrivateRelease):
    """Context of one private fit of an estimator, which enforces the order of its steps.

    It is a `PrivateRelease`: it charges once, and noise comes only from the source that the charge
    returns. Nothing is published without a charge. If a step fails before `publish`, the estimator
    has no fitted attributes, and the charge is not refunded. Use `private_fit` to create one.

    Parameters
    ----------
    estimator : estimator
        It has the parameters `accountant` and `random_state`.
    progress : FitProgress, default=None
        Reports the progress of the fit; None reports nothing.

    Examples
    --------
    In an estimator's ``fit``::

        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            means = fit.run(plan, table)
            fit.publish(plan, public=("the bounds",), mean_=means)
    """

    def __init__(self, estimator, progress=None):
        super().__init__(
            label=type(estimator).__name__,
            accountant=estimator.accountant,
            random_state=estimator.random_state,
        )
        self._estimator = estimator
        self._is_published = False
        self._public_charge = None
        self.progress = progress

    def __enter__(self):
        self._forget()
        super().__enter__()
        if self.progress is not None:
            self._settings.enter_context(self.progress)
        return self

    def __exit__(self, kind, error, traceback):
        if not self._is_published:
            self._forget()
        super().__exit__(kind, error, traceback)

    @property
    def _column_names(self):
        return names_for_keys(self._estimator)

    @property
    def _is_released(self):
        """True if the fitted attributes are set."""
        return self._is_published

    def _check_callers(self):
        # The tools around an outer release were checked when that release began.
        if not (is_inside_release() or isinstance(self._accountant, Allowance)):
            check_callers(self._estimator, partial(raw_data_policy, self._config))

    def read(self, X, y=None, *, groups=None, **options):
        """Validate the data and return them with their public shape.

        Each row is checked independently of the others, and nothing is computed from values.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows that the estimator accepts. For an estimator that is not a `PrivateEstimator` they
            must be finite numbers, which are read in double precision without a copy if possible.
        y : array-like of shape (n_samples,), default=None
            Labels or targets, if the estimator needs them.
        groups : array-like of shape (n_samples,), default=None
            The person id of each row, if persons are the privacy unit.
        **options
            Options of the estimator's ``_read_table``, such as the classes of a partial fit.

        Returns
        -------
        ReadTable

        Raises
        ------
        TypeError, ValueError
            If the data are invalid, as in scikit-learn.
        """
        estimator = self._estimator
        # A lazy target is computed once, to be counted and read.
        y = computed_column(y)
        if isinstance(estimator, PrivateEstimator):
            estimator._labels_in = non_positional_labels(X)
            table = estimator._read_table(X, y, **options)
        else:
            table = _read_numbers(estimator, X, y)
        check_lengths(table.shape.n_rows, y=y)
        return self.with_groups(table, groups)

    @property
    def guarantee(self):
        """Guarantee that the fit must meet; see `guarantee_of`. Read it after the groups."""
        params = self._estimator.get_params(deep=False)
        return self.make_guarantee(params["epsilon"], params.get("delta", 0.0))

    def with_groups(self, table, groups):
        """Read the person ids and return the `ReadTable` with its number of privacy units."""
        return table.with_n_units(self.read_groups(groups, table.shape.n_rows))

    def check_plan(self, plan):
        super().check_plan(plan)
        check_output_setting(self._estimator, sparse=getattr(plan, "sparse_output", False))

    def check_table(self, plan, table):
        """Raise `ValueError` if the plan cannot process every row of the table.

        Parameters
        ----------
        plan : Plan
        table : ReadTable
        """
        if isinstance(self._estimator, PrivateEstimator):
            self._estimator._check_rows(table.rows, plan)
        if plan.event != EMPTY_EVENT:
            check_readable(table.rows)

    def run(self, plan, table, **options):
        """Charge a plan, then run it on the table, and return the released values.

        Parameters
        ----------
        plan : Plan
            The plan of this table.
        table : ReadTable
        **options
            Further arguments of the plan's `run`, such as released weights to start from.

        Returns
        -------
        object
            The result of the plan's `run`.

        Raises
        ------
        ValueError
            If the plan cannot process the table; nothing was charged.
        BudgetExceededError
            If the budget does not cover the charge.
        """
        self.check_table(plan, table)
        shape = table.shape
        params = self._estimator.get_params(deep=False)
        report_declared_identifiers(params, shape.names, shape.n_columns, shape.n_rows)
        source = self.charge(plan)
        if self.progress is not None:
            self.progress.charged(plan, self.cost_of(plan))
        return plan.run(table.rows, source, **options, **self.run_params)

    def publish(
        self,
        mechanism,
        *,
        public=None,
        sampler=None,
        trust_model=CENTRAL,
        stages=None,
        is_size_public=True,
        **released,
    ):
        """Set the fitted attributes and the privacy statement.

        A text that is a `skdp.utils.UnitText` is written for the privacy unit; other strings are
        used unchanged.

        Parameters
        ----------
        mechanism : mechanism or plan
            The one that was charged.
        public : tuple of str, default=None
            Descriptions of the facts that were assumed to be public. None means the numbers of rows
            and columns, or the facts returned by ``_assumptions`` of a `PrivateEstimator`.
        sampler : str, default=None
            Description of the rows that each stage reads; None composes it from the stages.
        trust_model : str
            Description of who sees the raw data.
        stages : tuple of Stage, default=None
            The releases; None uses those of the mechanism.
        is_size_public : bool, default=True
            True if the number of privacy units, rows or persons, is assumed to be public.
        **released
            Fitted attributes: released values, and values computed from them.

        Raises
        ------
        RuntimeError
            If there was no charge, or it was refused.
        """
        if not self._is_charged:
            raise RuntimeError("publish needs a charged plan: call charge first")
        config = self.terms
        if public is None and isinstance(self._estimator, PrivateEstimator):
            public = self._estimator._assumptions()
        elif public is None:
            public = public_inputs(self._estimator)
        is_empty = mechanism.event == EMPTY_EVENT
        if is_empty:
            stages = ()
        else:
            stages = stages_of(mechanism) if stages is None else stages
            stages = tuple(stage.for_unit(config.unit) for stage in stages)
        if sampler is None or is_empty:
            sampler = sampler_of(stages)
        # A plan that is published without a charge, such as the plan of randomized response, has a
        # cost but no charge.
        charges = () if self._is_free else (self.public_charge(mechanism),)
        price = charges[0] if charges else self.cost_of(mechanism)
        part = charges[0].part if charges else None
        if part is not None:
            public = (*public, describe_part(part))
        is_seeded = not is_empty and self._random_state is not None
        for name, value in released.items():
            setattr(self._estimator, name, value)
        statement = PrivacyStatement(
            estimator=self._label,
            epsilon=price.epsilon,
            delta=price.delta,
            relation=config.relation,
            unit=describe_unit(config.unit, config.max_rows, config.missing_ids),
            mechanism=mechanism.name,
            noise_scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            composition=_describe_composition_of(self._accountant, config),
            sampler=for_unit(sampler, config.unit),
            public=tuple(for_unit(text, config.unit) for text in public),
            seeded=is_seeded or any(charge.seeded for charge in charges),
            record=self.ledger_entry.hash if self.ledger_entry else "",
            version=__version__,
            trust_model=trust_model,
            neighbors=describe_relation(
                config.relation, config.unit, config.max_rows, is_size_public=is_size_public
            ),
            dataset=dataset_of(self._accountant),
            noise_multiplier=getattr(mechanism, "noise_multiplier", None),
            stages=stages,
            charges=charges,
        )
        self._estimator.privacy_ = self._statement_of_model(statement)
        self._is_published = True

    def _statement_of_model(self, fit_statement):
        """Return the privacy statement of the fitted model.

        After several calls of `partial_fit` it covers all of them, the last of which has the
        statement `fit_statement`.
        """
        return fit_statement

    def public_charge(self, mechanism):
        """Return this fit's charge as the statement shows it, without its user and purpose.

        Without an accountant it is the charge that would have been made. Every call returns the
        same object, so that a report counts it once.
        """
        if self._public_charge is None:
            self._public_charge = self._make_charge(mechanism)
        return self._public_charge

    def _make_charge(self, mechanism):
        charge = self.ledger_entry
        if charge is None:
            cost = self.cost_of(mechanism)
            charge = Charge(
                self._label,
                mechanism.event,
                epsilon=cost.epsilon,
                delta=cost.delta,
                seeded=self._random_state is not None,
                time="",
                version=__version__,
            )
        # The statement is public. User, purpose, time and the number of earlier charges stay in
        # the ledger.
        return replace(charge, user="", purpose="", time="", sequence=0)

    def _forget(self):
        forget_fitted(self._estimator)
