"""The life of a private fit: read, plan, charge, run, publish; and the door to every release."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial, wraps

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from skdp._data._answers import by_parts
from skdp._data._columns import check_readable, labels_apart, names_for_keys
from skdp._data._persons import read_persons
from skdp._data._tables import RowsAndTarget, TableShape, read_array, read_target
from skdp._privacy_statement import CENTRAL, PrivacyStatement
from skdp._version import __version__
from skdp.accounting import Composed, Guarantee
from skdp.exceptions import LedgerError, RawDataWarning
from skdp.ledger import Allowance, PrivacyAccountant
from skdp.ledger._report import describe_composition, describe_relation, describe_unit
from skdp.ledger._state import Charge, LedgerConfig
from skdp.mechanisms._plan import plan_for
from skdp.mechanisms._stages import sampler_of, stages_of
from skdp.mechanisms._unknown_shape import plan_unknown_shape
from skdp.noise import NoiseGuard, RandomSource
from skdp.noise._source import is_inside_release
from skdp.utils._callbacks import CallbackSupportMixin, with_callbacks
from skdp.utils._callers import check_callers, is_judged_before_copies, is_sent_to_workers
from skdp.utils._dask import Run
from skdp.utils._findings import collect_findings, report_declared_identifiers, warn_of_findings
from skdp.utils._fit_arguments import fitted_names as fitted_names
from skdp.utils._fit_arguments import forget_fitted, without_weights
from skdp.utils._fit_progress import FitProgress
from skdp.utils._output import check_output_setting
from skdp.utils._units import for_unit
from skdp.utils._validation import has_auto, public_inputs
from skdp.utils._values import FrozenValue

UNACCOUNTED = LedgerConfig(1.0, 0.0)
NOTHING = Composed(())


def relation_of(accountant):
    """Return the relation that an estimator's sensitivities are for."""
    return terms_of(accountant).relation


def terms_of(accountant):
    """Return what an accountant protects, add/remove of one row without one.

    Raises
    ------
    ValueError
        If it is no accountant.
    """
    if accountant is None:
        return UNACCOUNTED
    if not hasattr(accountant, "charge"):
        raise ValueError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    return accountant.config


def on_raw_data_of(terms):
    """Return what a ledger asks for where a tool computes from raw rows: "warn" or "raise"."""
    return getattr(terms, "on_raw_data", "warn")


def _check_callers_of(estimator, occasion):
    """Look at the tools around a private estimator that is cloned, or answers.

    Their `fit` may not fit it in this thread, or not fit it at all because it is fitted.
    """
    accountant = getattr(estimator, "accountant", None)
    if is_inside_release() or isinstance(accountant, Allowance):
        return

    def on_raw_data():
        try:
            return on_raw_data_of(terms_of(accountant))
        except (LedgerError, ValueError):
            # A fitted model answers where its ledger is not, and a fit refuses such an accountant.
            return "warn"

    check_callers(estimator, on_raw_data, occasion)


def neighbors_of(accountant, terms=None):
    """Return the `Neighbors` of a fit's guarantee, add/remove of one row without an accountant.

    A step of a plan that was priced for a group of rows is calibrated for one of them. Terms that
    were read are not read again.
    """
    neighbors = (terms or terms_of(accountant)).neighbors
    return neighbors.per_row if hasattr(accountant, "planned") else neighbors


def guarantee_of(estimator):
    """Return what an estimator's fit must meet, by its parameters and its accountant.

    Parameters
    ----------
    estimator : estimator
        With parameters `epsilon`, `accountant` and, if it takes one, `delta`.

    Returns
    -------
    Guarantee

    Raises
    ------
    ValueError
        If epsilon or delta is out of range.
    """
    params = estimator.get_params(deep=False)
    price = {"epsilon": params["epsilon"], "delta": params.get("delta", 0.0)}
    return Guarantee(**price, neighbors=neighbors_of(params["accountant"]))


def dataset_of(accountant):
    """Return the name of the data set that an accountant's charges are about, "" without one."""
    return getattr(accountant, "dataset", "") or ""


def _holds_dates(value):
    """Say whether a parameter is or holds a pandas Timestamp without a time zone."""
    if isinstance(value, dict):
        return any(map(_holds_dates, value.values()))
    if type(value) in (list, tuple):
        return any(map(_holds_dates, value))
    return hasattr(value, "to_datetime64") and getattr(value, "tzinfo", None) is None


def _plain_dates(value):
    """Return a parameter with the dates of NumPy in the place of those of pandas."""
    if isinstance(value, dict):
        return {key: _plain_dates(each) for key, each in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain_dates, value))
    return value.to_datetime64() if _holds_dates(value) else value


def _composition(accountant, terms):
    """Return in words how a fit's cost adds to others."""
    if accountant is None:
        return "none"
    plan = getattr(accountant, "plan", None)
    words = describe_composition(terms.composition)
    return words if plan is None else f"{plan}; {words}"


GROUPS_OF_NO_PERSONS = (
    "with groups the unit is a person, and that of the accountant is a {unit}: open a ledger with "
    "unit='person', or leave groups out"
)


def private_fit_method(fit):
    """Decorate `fit` or `partial_fit` of a private estimator.

    The method refuses any `sample_weight` but None, leaves the estimator unfitted if its arguments
    are wrong, and runs the callbacks of scikit-learn (from version 1.9 on).

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
    """Decorate `plan_fit`, so that it also plans for groups of rows and for unknown shapes.

    The decorated method is written for one row and a known shape. For a group of `max_rows` rows
    it plans with the noise that a group needs. Where the number of rows or of columns is None, the
    plan's event holds for every shape.

    Parameters
    ----------
    plan_fit : callable
        The method ``plan_fit(self, shape, guarantee)``.

    Returns
    -------
    callable
    """

    @wraps(plan_fit)
    def planned(self, shape, guarantee, **more):
        def plan_of(shape):
            return plan_for(partial(plan_fit, self, shape, **more), guarantee)

        if None in (shape.n_rows, shape.n_columns):
            return plan_unknown_shape(plan_of, self.get_params(deep=False), shape, guarantee)
        return plan_of(shape)

    return planned


def private_answer(method):
    """Decorate a method by which a fitted estimator answers samples, such as `inverse_transform`.

    It suppresses NumPy's warnings, since an overflow would reveal the size of a value, and looks
    at the tools that call it.

    Parameters
    ----------
    method : callable
        The method ``transform(self, X)``, ``predict(self, X)`` or the like.

    Returns
    -------
    callable
    """

    @wraps(method)
    def answer(self, *args, **kwargs):
        _check_callers_of(self, "answer")
        with np.errstate(all="ignore"):
            return method(self, *args, **kwargs)

    return answer


def row_wise_answer(method):
    """Decorate a method that computes each row's answer from that row alone.

    In addition to what `private_answer` does, the answers to a table in partitions are computed
    partition by partition.

    Parameters
    ----------
    method : callable
        The method ``transform(self, X)``, ``predict(self, X)`` or the like.

    Returns
    -------
    callable
    """
    return private_answer(by_parts(method))


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadTable(FrozenValue):
    """What a fit has read, before its charge.

    Parameters
    ----------
    rows : object
        As the estimator's plan takes them.
    shape : TableShape
        What of them is public.
    """

    rows: object
    shape: TableShape

    def of(self, n_units):
        """Return it with the number of units, rows or persons, which is what is public."""
        return replace(self, shape=replace(self.shape, n_rows=n_units))


class PrivateEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class of private estimators.

    A subclass has the parameters `epsilon`, `accountant` and `random_state` at least, and writes
    its constructor as scikit-learn asks. It reads a table by ``_read_table(X, y)``, which returns a
    `ReadTable`, plans a fit by ``plan_fit(shape, guarantee)`` and returns by ``_statement(plan)``
    the entries of the privacy statement beside the price. Its ``fit`` is
    ``return self._fit(X, y, groups)``. Its methods are decorated by `private_fit_method`,
    `plans_for_groups`, and `row_wise_answer` or `private_answer`. It is fitted once it has a
    privacy statement.

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

    # The parameters that every private estimator has.
    epsilon: float
    accountant: PrivacyAccountant | None
    random_state: int | None

    # Whether a fit releases nothing where parameters declare everything; pipelines ask.
    _may_release_nothing = False
    # The parameters that make what a fit charges hang on the table's shape, where they are "auto";
    # None where it does whatever they are.
    _of_shape_if_auto = None

    def __sklearn_is_fitted__(self):
        return hasattr(self, "privacy_")

    def __getstate__(self):
        # skops, by which mlflow stores models, cannot make a pandas Timestamp again.
        params = self.get_params(deep=False)
        plain = {n: _plain_dates(value) for n, value in params.items() if _holds_dates(value)}
        if is_sent_to_workers():
            # A worker process cannot see what is around the tool that uses it.
            try:
                _check_callers_of(self, "clone")
            except (ValueError, RawDataWarning) as error:
                # joblib would hide the error of a pickle: the worker raises it.
                plain["_refusal"] = error
        return super().__getstate__() | plain

    def __sklearn_clone__(self):
        _check_callers_of(self, "clone")
        return super().__sklearn_clone__()

    def __sklearn_tags__(self):
        # scikit-learn's tools ask for tags just before they read the folds that they were given.
        if is_judged_before_copies():
            _check_callers_of(self, "clone")
        return super().__sklearn_tags__()

    def _charge_needs_no_shape(self):
        """Say whether what a fit charges is the same for every shape of table."""
        names = self._of_shape_if_auto
        return names is not None and not any(has_auto(getattr(self, name, None)) for name in names)

    def get_metadata_routing(self):
        """Return what `fit` asks for as metadata: `groups` where the unit is a person.

        What ``set_fit_request`` says goes before.

        Returns
        -------
        MetadataRequest
        """
        routing = super().get_metadata_routing()
        try:
            by_person = terms_of(getattr(self, "accountant", None)).unit == "person"
        except LedgerError:  # a fitted model predicts where its ledger is not, and a fit says so
            by_person = True
        for method in (routing.fit, routing.partial_fit):
            if method.requests.get("groups", False) is None:
                method.add_request(param="groups", alias=by_person)
        return routing

    def plan_fit(self, shape, guarantee):
        """Return the plan of a fit to a table of this shape.

        Parameters
        ----------
        shape : TableShape
            Public shape of the table, with its labels unless `classes` declares them. Where the
            number of rows or of columns is None, the plan's event holds for every shape, and
            parameters that need no shape are checked all the same.
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

    def _fit(self, X, y=None, groups=None):
        """Fit and return the estimator: the life of a private fit."""
        with PrivateFit(self) as fit, FitProgress(self) as progress:
            self._labels_in = labels_apart(X)
            table = fit.owned(self._read_table(X, y), groups)
            plan = self._checked_plan(table, fit.guarantee)
            shape = table.shape
            params = self.get_params(deep=False)
            report_declared_identifiers(params, shape.names, shape.n_columns, shape.n_rows)
            self._run(fit, progress, table, plan, self._statement(plan))
        return self

    def _run(self, fit, progress, table, plan, said, **given):
        """Charge the plan of a fit, run it and publish what it released."""
        source = fit.charge(plan)
        progress.charged(plan, fit.price(plan))
        released = self._released(plan.run(table.rows, source, **given, **fit.shared), plan)
        labels = {} if table.shape.classes is None else {"classes_": table.shape.classes}
        fit.publish(plan, **said | labels | released)

    def _released(self, run, plan):
        """Return the fitted attributes: what a plan's run returned, or is computed from it."""
        return run

    def _checked_plan(self, table, guarantee):
        """Return the plan of a fit to a table that was read, all of whose rows it can take."""
        plan = self.plan_fit(table.shape, guarantee)
        self._check_rows(table.rows, plan)
        if plan.event != NOTHING:
            check_readable(table.rows)
        return plan

    def _check_rows(self, rows, plan):
        """Raise `ValueError` if rows hold what a plan cannot take."""

    def _rehearse(self, X, y=None, groups=None, *, n_units=None):
        """Do what a fit to so many units does up to its charge, on an allowance of nobody's."""
        with PrivateFit(self) as fit:
            self._labels_in = labels_apart(X)
            table = fit.owned(self._read_table(X, y), groups)
            table = table if n_units is None else table.of(n_units)
            fit.charge(self._checked_plan(table, fit.guarantee))

    def _shape_of(self, rows, **more):
        """Return the `TableShape` of rows that were read."""
        names = names_for_keys(self)
        return TableShape(n_rows=rows.shape[0], n_columns=rows.shape[1], names=names, **more)


class TableEstimator(PrivateEstimator):
    """An estimator that reads rows by ``_read(X, reset)``, and has answers to samples of them.

    Predictors read what comes with the rows by ``_read_target(y, n_rows)``: the labels of classes,
    None of a regressor, and codes or targets. `_accepts` holds the input tags of what is read
    beside numbers in a dense table. `_public` names the parameters that declare something of the
    rows, and `_also_public` says in words what else of them a fit takes to be public.
    """

    _accepts = _also_public = ()

    def _read_table(self, X, y=None, reset=True, **declared):
        X = self._read(X, reset=reset)
        classes, y = self._read_target(y, X.shape[0], **declared)
        rows = X if y is None else RowsAndTarget(X, y)
        return ReadTable(rows=rows, shape=self._shape_of(X, classes=classes))

    def _read_target(self, y, n_rows):
        return None, None

    def _assumptions(self):
        """Say in words what a fit takes to be public."""
        return (*public_inputs(self, *self._public), *self._also_public)

    def _statement(self, plan):
        return {"public": self._assumptions()}

    def _table(self, X):
        """Return the samples to answer, as they are read."""
        check_is_fitted(self)
        return self._read(X, reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        for kind in self._accepts:
            setattr(tags.input_tags, kind, True)
        return tags


class PrivateRelease:
    """One charge and the noise that it pays for, as a context: the only door to a release.

    Inside it noise can be drawn only from the source that `charge` returns, so a release that is
    not in the ledger cannot be made; what charges twice raises. Data are checked to be finite
    whatever scikit-learn's ``assume_finite`` says, and numpy warns of no number's size.

    Parameters
    ----------
    label : str
        What releases, for the ledger.
    accountant : PrivacyAccountant or None
        Where it is charged.
    random_state : int or None
        Of the noise.

    Examples
    --------
    >>> from skdp.base import PrivateRelease
    >>> from skdp.mechanisms import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    >>> with PrivateRelease(label="a sum", accountant=None, random_state=None) as release:
    ...     source = release.charge(mechanism)
    ...     noisy = mechanism.release(17.0, random_state=source)
    """

    def __init__(self, *, label, accountant, random_state):
        self._label = label
        self._accountant = accountant
        self._random_state = random_state
        self._tried = self._charged = self._nothing_charged = False
        self._persons = self._of_group = self.spend = None

    def __enter__(self):
        # A closed data set is refused before its rows are read.
        known = getattr(self._accountant, "_open_config", partial(terms_of, self._accountant))
        self._known = known()
        self._check_callers()
        with ExitStack() as settings:
            # Unchecked, one row that is not finite makes a fit fail after its charge.
            settings.enter_context(config_context(assume_finite=False))
            # scikit-learn's checks sum the values: no warning may tell of an overflow.
            settings.enter_context(np.errstate(all="ignore"))
            self._noise_guard = settings.enter_context(NoiseGuard())
            settings.enter_context(Run())
            self._findings = settings.enter_context(collect_findings())
            self._settings = settings.pop_all()
        return self

    def __exit__(self, kind, error, traceback):
        self._settings.__exit__(kind, error, traceback)
        # Last, so that a fit keeps what was paid for if the warning is made an error.
        if kind is None and self._is_released:
            warn_of_findings(self._label, self._findings, self._column_names)

    # The names of the table's columns, for warnings.
    _column_names = None

    @property
    def _is_released(self):
        """True if what the noise was added to is seen."""
        return self._charged

    def _check_callers(self):
        """Refuse, or warn of, what is computed from the rows around this; see `PrivateFit`."""

    @property
    def terms(self):
        """What is protected: persons, where no accountant says otherwise and rows have some."""
        return replace(self._known, unit="person") if self._persons else self._known

    def price(self, plan):
        """Return what has the epsilon and delta of a plan's charge."""
        return plan if plan.event == NOTHING else self._of_group or plan

    def guaranteed(self, epsilon, delta):
        """Return the `Guarantee` of an epsilon and a delta of the unit, which a charge is for."""
        neighbors = neighbors_of(self._accountant, self.terms)
        guarantee = Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)
        self._of_group = guarantee if neighbors.max_rows > 1 else None
        return guarantee

    @property
    def shared(self):
        """What a plan runs on beside rows: `persons`, where these are the unit."""
        return {"persons": self._persons} if self._persons else {}

    def n_units(self, groups, n_rows):
        """Read whose the rows are and return the number of units: of rows, or of persons.

        Raises
        ------
        ValueError
            If `groups` are missing under the accountant's unit, or do not go with it.
        """
        unit = self._known.unit
        if groups is None:
            return n_rows
        if self._accountant is not None and unit != "person":
            raise ValueError(GROUPS_OF_NO_PERSONS.format(unit=unit))
        self._persons = read_persons(groups, n_rows, self._known.missing_ids)
        return self._persons.n_persons

    def check_plan(self, plan):
        """Raise `ValueError` for what could not be done with a plan; called before the charge."""
        if self.terms.unit != "person":
            return
        if self._persons is None:
            raise ValueError(
                "the accountant's unit is a person: pass groups, an id of the person of each row; "
                "in a Pipeline or a ColumnTransformer groups are passed on after "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
        if not getattr(plan, "by_person", False):
            raise ValueError(
                f"{self._label} with these parameters has no release whose unit is a person: "
                "leave groups out and use an accountant with unit='row' or unit='group'"
            )

    def charge(self, plan, size=None):
        """Book the plan's event and return the source of its noise.

        Parameters
        ----------
        plan : Plan
            With `event`, `epsilon` and `delta`. One that releases nothing is not booked.
        size : int, default=None
            How many values an additive mechanism will release together: it is asked first
            whether it can.

        Returns
        -------
        RandomSource or None
            None for a plan that releases nothing.

        Raises
        ------
        RuntimeError
            If something was charged before, or refused.
        ValueError
            If epsilon is too small for that many values, a transformer's output cannot be put
            in the container that is set, or the unit is a person and the plan's is not.
        BudgetExceededError
            If the accountant refuses.
        """
        if self._tried:
            raise RuntimeError(
                "a private fit charges once: put all that it releases into one plan "
                "(skdp.mechanisms.JointMechanism)"
            )
        if size is not None:
            plan.check_size(size)
        self.check_plan(plan)
        self._tried = True
        if plan.event == NOTHING:
            self._charged = self._nothing_charged = True
            return None
        source = RandomSource(self._random_state)
        if self._accountant is not None:
            price = self.price(plan)
            price = {"epsilon": price.epsilon, "delta": price.delta}
            words = {"label": self._label, "seeded": source.seeded}
            self.spend = self._accountant.charge(plan.event, **price, **words)
        self._charged = True
        self._noise_guard.source = source
        return source


class PrivateFit(PrivateRelease):
    """One private fit of an estimator, as a context that keeps its steps in order.

    It is a `PrivateRelease`: one charge, and noise from the source that it returns alone. What was
    not charged cannot be published. If anything fails before `publish`, the estimator is left
    without a fitted attribute; what was charged stays charged.

    Parameters
    ----------
    estimator : estimator
        With parameters `accountant` and `random_state`.

    Examples
    --------
    In an estimator's ``fit``::

        with PrivateFit(self) as fit:
            X = fit.read(X)
            shape = TableShape(n_rows=X.shape[0], n_columns=X.shape[1])
            plan = self.plan_fit(shape, fit.guarantee)
            source = fit.charge(plan)
            fit.publish(plan, public=("the bounds",), **plan.run(X, source))
    """

    def __init__(self, estimator):
        own = {"accountant": estimator.accountant, "random_state": estimator.random_state}
        super().__init__(label=type(estimator).__name__, **own)
        self._estimator = estimator
        self._published = False
        self._own = None

    def __enter__(self):
        self._forget()
        return super().__enter__()

    def __exit__(self, kind, error, traceback):
        if not self._published:
            self._forget()
        super().__exit__(kind, error, traceback)

    @property
    def _column_names(self):
        return names_for_keys(self._estimator)

    @property
    def _is_released(self):
        """True if the fitted attributes are set."""
        return self._published

    def _check_callers(self):
        # What runs inside another release was looked at with that one.
        if not (is_inside_release() or isinstance(self._accountant, Allowance)):
            check_callers(self._estimator, lambda: on_raw_data_of(self._known))

    def read(self, X, y=None):
        """Read a table of numbers, and labels or targets, each row by itself.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,), default=None
            Labels or targets, for an estimator that needs some.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), float64
            Not copied where no conversion is needed.
        y : ndarray of shape (n_samples,)
            Only if it was given, or is required by the estimator's tags.

        Raises
        ------
        TypeError, ValueError
            If scikit-learn would raise it.
        """
        X = read_array(self._estimator, X, dtype=np.float64)
        if y is None and not get_tags(self._estimator).target_tags.required:
            return X
        return X, read_target(self._estimator, y, len(X))

    @property
    def guarantee(self):
        """What the fit must meet; see `guarantee_of`."""
        params = self._estimator.get_params(deep=False)
        return self.guaranteed(params["epsilon"], params.get("delta", 0.0))

    def owned(self, table, groups):
        """Return a `ReadTable` with its public number of units, rows or persons."""
        return table.of(self.n_units(groups, table.shape.n_rows))

    def check_plan(self, plan):
        super().check_plan(plan)
        check_output_setting(self._estimator, sparse=getattr(plan, "sparse_output", False))

    def publish(
        self,
        mechanism,
        *,
        public,
        sampler=None,
        trust_model=CENTRAL,
        stages=None,
        is_size_public=True,
        **released,
    ):
        """Set the fitted attributes and the privacy statement.

        Texts that are a `skdp.utils.UnitText` are written for the unit; other strings stay as they
        are given.

        Parameters
        ----------
        mechanism : mechanism
            The one that was charged.
        public : tuple of str
            What was taken to be public, in words.
        sampler : str, default=None
            Which rows went into the release, in words; None composes it of the stages.
        trust_model : str
            Who sees what, in words.
        stages : tuple of Stage, default=None
            The releases; None takes those of the mechanism.
        is_size_public : bool, default=True
            Whether the number of units, of rows or of persons, is taken to be public.
        **released
            Attributes: released values and what is computed from them.

        Raises
        ------
        RuntimeError
            If nothing was charged, or the charge was refused.
        """
        if not self._charged:
            raise RuntimeError("a private fit publishes what it charged: call charge first")
        terms = self.terms
        nothing = mechanism.event == NOTHING
        stages = stages_of(mechanism) if stages is None else stages
        stages = () if nothing else tuple(stage.for_unit(terms.unit) for stage in stages)
        sampler = sampler_of(stages) if sampler is None or nothing else sampler
        charges = () if self._nothing_charged else (self.own_charge(mechanism),)
        price = charges[0] if charges else self.price(mechanism)
        for name, value in released.items():
            setattr(self._estimator, name, value)
        own = PrivacyStatement(
            estimator=self._label,
            epsilon=price.epsilon,
            delta=price.delta,
            relation=terms.relation,
            unit=describe_unit(terms.unit, terms.max_rows, terms.missing_ids),
            mechanism=mechanism.name,
            noise_scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            composition=_composition(self._accountant, terms),
            sampler=for_unit(sampler, terms.unit),
            public=tuple(for_unit(words, terms.unit) for words in public),
            seeded=not nothing and self._random_state is not None or any(c.seeded for c in charges),
            record=self.spend.hash if self.spend else "",
            version=__version__,
            trust_model=trust_model,
            neighbors=describe_relation(
                terms.relation, terms.unit, terms.max_rows, is_size_public=is_size_public
            ),
            dataset=dataset_of(self._accountant),
            noise_multiplier=getattr(mechanism, "noise_multiplier", None),
            stages=stages,
            charges=charges,
        )
        self._estimator.privacy_ = self._statement_of_model(own)
        self._published = True

    def _statement_of_model(self, own):
        """Return the statement of the fitted model, of which that of this fit is `own`."""
        return own

    def own_charge(self, mechanism):
        """Return this fit's charge: that of the ledger, or what it would have been.

        It is one object, however often it is asked for, so that a report counts it once.
        """
        if self._own is None:
            self._own = self._make_charge(mechanism)
        return self._own

    def _make_charge(self, mechanism):
        charge = self.spend
        if charge is None:
            price = self.price(mechanism)
            seeded = self._random_state is not None
            known = {"seeded": seeded, "time": "", "version": __version__}
            price = {"epsilon": price.epsilon, "delta": price.delta}
            charge = Charge(self._label, mechanism.event, **price, **known)
        # The statement is public: who charged, when and why stays in the ledger, and so does the
        # number of earlier charges.
        return replace(charge, user="", purpose="", time="", sequence=0)

    def _forget(self):
        forget_fitted(self._estimator)
