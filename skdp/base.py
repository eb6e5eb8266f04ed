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
3. **Charge and run**: `PrivateFit.run` writes the plan's event in the ledger and makes the release;
   noise can be drawn only from the source that the charge returns.
4. **Publish**: `PrivateFit.publish` sets the fitted attributes and the privacy statement.

`private_release` is the same context without an estimator, for functions that release a value.
"""

import inspect
import sys
from collections.abc import Callable
from functools import lru_cache, partial, wraps
from typing import ClassVar, Concatenate

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._data._answers import partitionwise
from skdp._data._clipping import clip_features, clip_rows
from skdp._data._kinds import container_kinds
from skdp._data._lengths import opened_table
from skdp._data._sums import exact_counts, exact_sum, sum_grid
from skdp._data._tables import RowsAndTarget, TableShape, names_for_keys, read_array, read_table
from skdp._fitting._callbacks import CallbackSupportMixin, with_callbacks
from skdp._fitting._callers import (
    check_callers,
    check_members_of_sender,
    has_warned_around,
    is_judged_before_copies,
)
from skdp._fitting._fit_context import (
    FitHooks,
    PrivateFit,
    ReadTable,
    fitted_names,
    forget_fitted,
    private_fit,
)
from skdp._fitting._members import check_members_around, is_checking_members
from skdp._fitting._release_context import (
    EMPTY_EVENT,
    GROUPS_WITHOUT_PERSON_UNIT,
    PrivateRelease,
    guarantee_of,
    neighbors_of,
    private_release,
    raw_data_policy,
    relation_of,
)
from skdp._fitting._tool_rules import NO_WEIGHTS, NamedRelease
from skdp._fitting._waiting_threads import is_sent_to_workers
from skdp.exceptions import LedgerError, RawDataWarning
from skdp.ledger import Allowance, PrivacyAccountant
from skdp.ledger._accountant import register_holder_checks
from skdp.ledger._terms import DEFAULT_CONFIG, terms_of
from skdp.mechanisms._plan import plan_for
from skdp.mechanisms._unknown_shape import plan_unknown_shape
from skdp.noise._source import is_inside_release
from skdp.utils._types import P, R, S
from skdp.utils._validation import has_auto, public_inputs

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

# Attributes that determine how an estimator's fits are checked after it was sent to a worker.
SENT_ATTRIBUTES = ("_is_sent_by_plan", "_was_reported", "_was_sent_without_seed")


def private_fit_method(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorate `fit` or `partial_fit` of a private estimator.

    The method refuses every `sample_weight` except None, and runs the callbacks of scikit-learn
    (version 1.9 and later). After a refused `fit`, the estimator has no fitted attributes, even if
    Python refuses an unknown or missing argument before `PrivateFit` is entered. A refused
    `partial_fit` does not change the model.

    Parameters
    ----------
    fit : callable
        The method ``fit(self, X, y, *, groups=None)``.

    Returns
    -------
    callable
    """

    @wraps(fit)
    def checked(self, *args, **params):
        """Call the method; remove the fitted attributes if Python refuses the arguments."""
        statement = vars(self).get("privacy_")
        try:
            if params.pop("sample_weight", None) is not None:
                raise TypeError(NO_WEIGHTS)
            return fit(self, *args, **params)
        except TypeError:
            # If the statement is still the old one, the fit has not begun. If a callback failed
            # after the fit, the statement is new and the fitted attributes are kept.
            if fit.__name__ == "fit" and vars(self).get("privacy_") is statement:
                forget_fitted(self)
            raise

    return with_callbacks(checked)


def plans_for_groups(plan_fit):
    """Decorate `plan_fit` so that it also handles groups of rows and unknown shapes.

    The decorated method is written for one row and a known shape. For a guarantee on groups of
    `max_rows` rows, the plan has the noise that a group requires. If the number of rows or of
    columns is None, the plan's event holds for every shape.

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
        """Return the plan for the unit of the guarantee, and for every shape if it is unknown."""
        make_plan = partial(plan_fit, self, **options)
        if shape.n_rows is None or shape.n_columns is None:
            params = self.get_params(deep=False)
            return plan_unknown_shape(make_plan, params, shape, guarantee)
        if guarantee.neighbors.unit != "group":
            return make_plan(shape, guarantee)
        return plan_for(partial(make_plan, shape), guarantee)

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
        """Check the callers, and call the method without NumPy's warnings."""
        _check_callers_of(self, "answer")
        with np.errstate(all="ignore"):
            return method(self, *args, **kwargs)

    return answer


def row_wise_answer(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Decorate a method that computes the output of each row from that row alone.

    It extends `private_answer`: the outputs for a partitioned table are computed partition by
    partition.

    Parameters
    ----------
    method : callable
        The method ``transform(self, X)``, ``predict(self, X)`` or the like.

    Returns
    -------
    callable
    """
    return private_answer(partitionwise(method))


@lru_cache(maxsize=1024)
def _parameter_names(cls):
    """Return the sorted names of the parameters of a class's constructor."""
    return sorted(inspect.signature(cls).parameters)


class PrivateEstimator(CallbackSupportMixin, FitHooks, BaseEstimator):
    """Base class of private estimators.

    A subclass has at least the parameters `epsilon`, `accountant` and `random_state`, and a
    constructor that follows scikit-learn's conventions. It defines

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

    # True if a fit releases nothing when its parameters declare everything. Pipelines use this
    # attribute.
    _may_release_nothing = False
    # Names of the parameters that make the charge depend on the table's shape if they are "auto".
    # None if the charge always depends on the shape.
    _shape_dependent_if_auto: ClassVar[tuple[str, ...] | None] = None

    def get_params(self, deep=True):
        """Return the parameters of this estimator.

        Parameters
        ----------
        deep : bool, default=True
            Include the parameters of nested estimators, as ``<parameter>__<its parameter>``.

        Returns
        -------
        dict of str to object
            The values, by the names of the parameters.
        """
        # The same result as scikit-learn's, which inspects the signature in each call. This takes
        # longer than a sum over a small table, and cloning and fitting ask for it four times.
        params = {}
        for name in _parameter_names(type(self)):
            value = getattr(self, name)
            params[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                for nested_name, nested_value in value.get_params().items():
                    params[f"{name}__{nested_name}"] = nested_value
        return params

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
            # A worker process cannot detect the tool that calls it from this process.
            try:
                if _check_callers_of(self, "send"):
                    replaced["_is_sent_by_plan"] = True
                check_members_of_sender()
                # The worker does not repeat the warnings of this process.
                if has_warned_around():
                    replaced["_was_reported"] = True
                if self.random_state is None:
                    replaced["_was_sent_without_seed"] = True
            except (ValueError, RawDataWarning) as error:
                # joblib would hide an error while pickling, so the worker raises it.
                replaced["_refusal"] = error
        state = super().__getstate__() | replaced
        for name in SENT_ATTRIBUTES:
            if name not in replaced:
                # A model that a worker process sends back is no longer part of the call that sent
                # it out.
                state.pop(name, None)
        return state

    def __sklearn_clone__(self):
        _check_callers_of(self, "clone")
        copied = super().__sklearn_clone__()
        for name in SENT_ATTRIBUTES:
            if getattr(self, name, False):
                setattr(copied, name, True)
        return copied

    def __sklearn_tags__(self):
        # scikit-learn's tools read the tags just before they read folds from a generator. They also
        # read the tags of frozen estimators. The fit itself reads them, too: the tools around it
        # were judged when it began.
        is_fitted = hasattr(self, "privacy_")
        if not is_inside_release() and is_judged_before_copies(self, is_fitted=is_fitted):
            _check_callers_of(self, "clone")
        return super().__sklearn_tags__()

    def _charge_needs_no_shape(self):
        """Return True if a fit charges the same for tables of every shape."""
        names = self._shape_dependent_if_auto
        return names is not None and not any(has_auto(getattr(self, name, None)) for name in names)

    def get_metadata_routing(self):
        """Return the metadata that `fit` requests: `groups` if the privacy unit is a person.

        A request set with ``set_fit_request`` takes precedence.

        Returns
        -------
        MetadataRequest
        """
        routing = super().get_metadata_routing()
        try:
            unit_is_person = terms_of(getattr(self, "accountant", None)).unit == "person"
        except LedgerError:
            # A fitted model predicts even if its ledger cannot be opened. `fit` raises the error.
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
            Public shape of the table, with its labels unless `classes` declares them. If the
            number of rows or of columns is None, the plan's event holds for every shape. Parameters
            that need no shape are also checked then.
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

    def _dry_run(self, X, y=None, groups=None, *, n_units=None):
        """Run a fit up to its charge, which goes to an allowance without a ledger.

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

    def _shape_of(self, rows, classes=None, kinds=None):
        """Return the `TableShape` of validated rows."""
        return TableShape(
            n_rows=rows.shape[0],
            n_columns=rows.shape[1],
            classes=classes,
            names=names_for_keys(self),
            kinds=kinds,
        )


class TableEstimator(PrivateEstimator):
    """Base class of estimators that learn from rows and predict or transform rows of the same kind.

    A subclass may override ``_read(X, reset)``, which validates rows; by default, they are finite
    numbers. A predictor defines ``_read_target(y, n_rows)``, which returns the class labels (None
    in a regressor) and the codes or targets of the rows.
    """

    # scikit-learn's input tags for the accepted data other than dense tables of numbers.
    _accepts: ClassVar[tuple[str, ...]] = ()
    # Names of the parameters that declare public facts about the rows; each subclass sets it.
    _public: ClassVar[tuple[str, ...]]
    # Further facts about the rows that a fit assumes to be public, as text.
    _also_public: ClassVar[tuple[str, ...]] = ()

    def _read_table(self, X, y=None, reset=True, **declared):
        """Return validated rows and their public shape, with the target if there is one."""
        if type(X) is not np.ndarray:
            # The types of a partitioned table are known only once it has been opened.
            X = opened_table(X)
        rows = self._read(X, reset=reset)
        classes, y = self._read_target(y, rows.shape[0], **declared)
        kinds = None
        if hasattr(X, "shape"):
            # A list of rows has no types.
            kinds = container_kinds(X)
        shape = self._shape_of(rows, classes=classes, kinds=kinds)
        if y is not None:
            rows = RowsAndTarget(rows, y)
        return ReadTable(rows=rows, shape=shape)

    def _read(self, X, reset=True):
        """Return validated rows of numbers."""
        return read_table(self, X, reset=reset)

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


def _check_callers_of(estimator, occasion):
    """Check the tools that call a private estimator for computations on the raw rows.

    The check at a fit does not find every tool: some tools fit the estimator in another thread, or
    use an already fitted estimator. So the check is repeated when the estimator is cloned and when
    it predicts or transforms.

    Parameters
    ----------
    estimator : estimator
    occasion : {"clone", "send", "answer"}

    Returns
    -------
    bool
        True if the steps around the estimator were already checked by an enclosing plan.
    """
    accountant = getattr(estimator, "accountant", None)
    # The callers of an outer release, or of a check of members, were checked when that began.
    if is_inside_release() or is_checking_members() or isinstance(accountant, Allowance):
        return False

    def policy():
        """Return the ledger's setting `on_raw_data`, or "warn" if it cannot be read."""
        try:
            return raw_data_policy(terms_of(accountant))
        except (LedgerError, ValueError):
            # A fitted model predicts even if its ledger cannot be opened. `fit` refuses an invalid
            # accountant.
            return "warn"

    is_planned = check_callers(estimator, policy, occasion)
    if occasion == "clone":
        # Tools send copies to workers, and the workers cannot detect the tool.
        check_members_around()
    return is_planned


def _check_clone_of_holder(accountant):
    """Check the tools that clone an estimator with an accountant: its fit may release something.

    A user-defined class may create its private estimator only in `fit`, and worker processes cannot
    detect the tool. Private estimators check their own clones.

    Parameters
    ----------
    accountant : PrivacyAccountant
    """
    holder = _cloned_holder()
    if holder is None or isinstance(holder, PrivateEstimator):
        return
    _check_callers_of_holder(type(holder).__name__, accountant, "clone")
    check_members_around()


def _check_sent_holder(accountant):
    """Return the error for a tool that sends an accountant to a worker, or None.

    Some tools clone their estimators only in the workers, or not at all, and a user's function may
    contain the accountant. `PrivacyAccountant.__reduce__` calls this function and stores the error
    in the copy for the worker, which raises it there: joblib hides errors while pickling.

    Parameters
    ----------
    accountant : PrivacyAccountant
        The accountant that is being pickled.

    Returns
    -------
    ValueError, RawDataWarning or None
    """
    if not is_sent_to_workers():
        return None
    try:
        _check_callers_of_holder("a private release", accountant, "send")
    except (ValueError, RawDataWarning) as error:
        return error
    return None


def _check_callers_of_holder(name, accountant, occasion):
    """Raise or warn if a tool around the clone or pickle of an accountant reads raw rows."""
    if is_inside_release() or is_checking_members():
        return
    try:
        terms = terms_of(accountant)
    except LedgerError:
        # A fit raises the error.
        return
    check_callers(NamedRelease(name, terms.unit), partial(raw_data_policy, terms), occasion)


def _cloned_holder():
    """Return the estimator whose parameters scikit-learn is cloning, or None."""
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__") or ""
        if module == "sklearn.base" and frame.f_code.co_name == "_clone_parametrized":
            holder = frame.f_locals.get("estimator")
            # An accountant may be in a list or a dictionary.
            if hasattr(holder, "get_params") and not isinstance(holder, type):
                return holder
        elif module not in ("sklearn.base", __name__, PrivacyAccountant.__module__):
            return None
        frame = frame.f_back
    return None


register_holder_checks(_check_clone_of_holder, _check_sent_holder)


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
    if _holds_dates(value):
        return value.to_datetime64()
    return value
