"""Context of one private fit: read, charge, run, publish; see `skdp.base`."""

import sys
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn import get_config
from sklearn.utils import get_tags

from skdp._data._columns import ColumnTable, check_loops_of
from skdp._data._dask import Run
from skdp._data._frames import non_positional_labels
from skdp._data._kinds import container_kinds
from skdp._data._lengths import check_lengths, computed_column, opened_table
from skdp._data._output import check_output_setting
from skdp._data._tables import RowsAndTarget, TableShape, names_for_keys, read_array, read_target
from skdp._fitting._call_stack import is_outside_of_tools
from skdp._fitting._callers import check_callers
from skdp._fitting._findings import report_declared_identifiers
from skdp._fitting._fit_progress import CURRENT_FIT, NO_PROGRESS, FitProgress
from skdp._fitting._members import check_members_around
from skdp._fitting._release_context import EMPTY_EVENT, PrivateRelease, raw_data_policy
from skdp._loops import NUMPY
from skdp._privacy_statement import (
    CENTRAL,
    NO_LEDGER,
    PREDICTIONS,
    TRANSFORMED_ROWS,
    PrivacyStatement,
)
from skdp._version import __version__
from skdp.ledger import Allowance, PrivacyAccountant
from skdp.ledger._report import (
    describe_composition,
    describe_part,
    describe_relation,
    describe_unit,
)
from skdp.ledger._state import Charge
from skdp.mechanisms._stages import sampler_of, stages_of
from skdp.noise._source import is_inside_release
from skdp.utils._units import for_unit
from skdp.utils._validation import public_inputs
from skdp.utils._values import FrozenValue


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
        if isinstance(self.rows, RowsAndTarget):
            return self.rows.X
        return self.rows

    @property
    def y(self):
        """The labels or targets of the rows, or None."""
        if isinstance(self.rows, RowsAndTarget):
            return self.rows.y
        return None

    def with_n_units(self, n_units):
        """Return the table with the public number of privacy units, rows or persons."""
        return replace(self, shape=replace(self.shape, n_rows=n_units))


def read_numbers(estimator, X, y=None):
    """Return the `ReadTable` of finite numbers, with labels or targets if y is passed."""
    X = opened_table(X)
    rows = read_array(estimator, X, dtype=np.float64)
    names = names_for_keys(estimator)
    kinds = None
    if hasattr(X, "shape"):
        # A list of rows has no types.
        kinds = container_kinds(X)
    shape = TableShape(n_rows=rows.shape[0], n_columns=rows.shape[1], names=names, kinds=kinds)
    if y is not None or get_tags(estimator).target_tags.required:
        rows = RowsAndTarget(rows, read_target(estimator, y, len(rows)))
    return ReadTable(rows=rows, shape=shape)


class FitHooks:
    """Methods of a private estimator that `PrivateFit` calls; `PrivateEstimator` has them."""

    def _read_table(self, X, y=None):
        """Return the validated rows of a fit, a `ReadTable`.

        Unless a subclass overrides it, rows are finite numbers in double precision.
        """
        return read_numbers(self, X, y)

    def _check_rows(self, rows, plan):
        """Raise `ValueError` if the plan cannot process a value of the rows."""

    def _assumptions(self):
        """Return descriptions of the facts that a fit assumes to be public."""
        return public_inputs(self)


def private_fit(estimator):
    """Return the context of one private fit of an estimator, which reads its table by `read`.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameters `accountant` and `random_state`, and `epsilon` unless it
        builds its guarantee itself.

    Returns
    -------
    PrivateFit
    """
    # scikit-learn stores callbacks, and the task of a pipeline around the fit, as attributes.
    has_callbacks = any("callback" in name for name in vars(estimator))
    verbose = getattr(estimator, "verbose", 0)
    progress = NO_PROGRESS
    # Other types of `verbose` are refused by the plan of the fit.
    if has_callbacks or type(verbose) not in (int, bool) or verbose:
        progress = FitProgress(estimator)
    return PrivateFit(estimator, progress, reads_table=True)


class PrivateFit(PrivateRelease):
    """Context of one private fit of an estimator, which enforces the order of its steps.

    It is a `PrivateRelease`: it charges once, and noise comes only from the source that the charge
    returns. Nothing is published without a charge. If a step fails before `publish`, the estimator
    has no fitted attributes, and the charge is not refunded. Use `private_fit` to create one.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameters `accountant` and `random_state`. The ledger names it by its
        class, or by an attribute `_release_label`.
    progress : FitProgress, default=None
        Reports the progress of the fit; `NO_PROGRESS` reports nothing. With None, steps are
        reported to the fit around this one.
    reads_table : bool, default=False
        True if the fit reads its only table by `read`.

    Examples
    --------
    In an estimator's ``fit``::

        with private_fit(self) as fit:
            table = fit.read(X, groups=groups)
            plan = self.plan_fit(table.shape, fit.guarantee)
            means = fit.run(plan, table)
            fit.publish(plan, public=("the bounds",), mean_=means)
    """

    def __init__(self, estimator, progress=None, *, reads_table=False):
        super().__init__(
            label=getattr(estimator, "_release_label", type(estimator).__name__),
            accountant=estimator.accountant,
            random_state=estimator.random_state,
        )
        self._estimator = estimator
        self._is_published = False
        self._public_charge = None
        # The run of a table in memory needs neither a dask client nor temporary files, so it begins
        # only when `read` receives another table.
        self._begins_run = not reads_table
        self.progress = progress

    def __enter__(self):
        self._forget()
        super().__enter__()
        if self.progress is NO_PROGRESS:
            self._settings.callback(CURRENT_FIT.reset, CURRENT_FIT.set(NO_PROGRESS))
        elif self.progress is not None:
            self._settings.enter_context(self.progress)
        return self

    def __exit__(self, kind, error, traceback):
        self._is_released = self._is_published
        if not self._is_published:
            self._forget()
        elif self._findings:
            self._column_names = names_for_keys(self._estimator)
        super().__exit__(kind, error, traceback)

    def _check_callers(self):
        """Raise or warn if a tool around the fit computes on raw rows; before the charge.

        Unlike the check of `PrivateRelease`, it also refuses an estimator that was refused before,
        when a tool sent it to a worker.
        """
        # The tools around an outer release were checked when that release began.
        if is_inside_release() or isinstance(self._accountant, Allowance):
            return
        # A copy that was refused when a tool sent it to a worker is refused everywhere.
        is_refused = getattr(self._estimator, "_refusal", None) is not None
        if is_refused or not is_outside_of_tools(sys._getframe(1)):
            check_callers(self._estimator, partial(raw_data_policy, self.terms))
            check_members_around()

    def read(self, X, y=None, *, groups=None, **options):
        """Validate the data and return them with their public shape.

        Each row is checked independently of the others, and nothing is computed from values. With
        `groups`, a person becomes the privacy unit of the fit, so `guarantee` and the number of
        units in the shape change.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows that the estimator accepts. If it is not a `PrivateEstimator`, they must be finite
            numbers, which are read in double precision, without a copy if possible.
        y : array-like of shape (n_samples,), default=None
            Labels or targets, if the estimator needs them.
        groups : array-like of shape (n_samples,), default=None
            The person id of each row, if the privacy unit is a person.
        **options
            Options of the estimator's ``_read_table``, such as the classes of a partial fit.

        Returns
        -------
        ReadTable

        Raises
        ------
        TypeError, ValueError
            If the data are invalid, as in scikit-learn; if `groups` are no valid ids, or the
            accountant's unit is not a person.
        """
        estimator = self._estimator
        if type(X) is not np.ndarray and not self._begins_run:
            self._settings.enter_context(Run())
        if y is not None and type(y) is not np.ndarray:
            # A lazy target is computed only once, to be counted and then read.
            y = computed_column(y)
        if isinstance(estimator, FitHooks):
            if options.get("reset", True):
                estimator._labels_in = None
                if type(X) is not np.ndarray:
                    estimator._labels_in = non_positional_labels(X)
            table = estimator._read_table(X, y, **options)
        else:
            table = read_numbers(estimator, X, y)
        n_rows = table.shape.n_rows
        is_array = type(y) is np.ndarray
        if y is not None and not (is_array and y.shape[:1] == (n_rows,)):
            check_lengths(n_rows, y=y)
        n_units = self.read_groups(groups, n_rows)
        if n_units == n_rows:
            return table
        return table.with_n_units(n_units)

    @property
    def guarantee(self):
        """Guarantee that the fit must meet; see `guarantee_of`. Read it after the groups."""
        estimator = self._estimator
        return self.make_guarantee(estimator.epsilon, getattr(estimator, "delta", 0.0))

    def check_plan(self, plan):
        """Raise `ValueError` also if the output cannot be in the container of `set_output`."""
        super().check_plan(plan)
        # scikit-learn stores the setting of `set_output` as an attribute. Without it, the output is
        # an array, unless `set_config` asks for another container.
        is_set = any(name.startswith("_sklearn_output") for name in vars(self._estimator))
        if is_set or get_config()["transform_output"] != "default":
            check_output_setting(self._estimator, sparse=getattr(plan, "sparse_output", False))

    def check_table(self, plan, table):
        """Raise `ValueError` if the plan cannot process every row of the table.

        `RuntimeError` is raised if a worker lacks the compiled loops that the plan uses.

        Parameters
        ----------
        plan : Plan
        table : ReadTable
        """
        if isinstance(self._estimator, FitHooks):
            self._estimator._check_rows(table.rows, plan)
        if plan.event != EMPTY_EVENT:
            X = table.X
            if isinstance(X, ColumnTable):
                X.check_readable()
            loops = getattr(plan, "loops", NUMPY)
            if loops != NUMPY:
                check_loops_of(X, loops)

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
        estimator = self._estimator
        if shape.names is not None or getattr(estimator, "categories", None) is not None:
            params = estimator.get_params(deep=False)
            report_declared_identifiers(params, shape.names, shape.n_columns, shape.n_rows)
        source = self.charge(plan)
        if self.progress is not None and self.progress is not NO_PROGRESS:
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

        Text that is a `skdp.utils.UnitText` is adapted to the privacy unit; other strings are used
        unchanged.

        Parameters
        ----------
        mechanism : mechanism or plan
            The mechanism or plan that was charged.
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
            If there was no charge, or the charge was refused.
        """
        if not self._is_charged:
            raise RuntimeError("publish needs a charged plan: call charge first")
        config = self.terms
        unit = config.unit
        if public is None and isinstance(self._estimator, FitHooks):
            public = self._estimator._assumptions()
        elif public is None:
            public = public_inputs(self._estimator)
        is_empty = mechanism.event == EMPTY_EVENT
        if is_empty:
            stages = ()
        elif stages is None:
            stages = stages_of(mechanism)
        stages = tuple(replace(stage, reads=for_unit(stage.reads, unit)) for stage in stages)
        if sampler is None or is_empty:
            sampler = sampler_of(stages)
        # A plan published without a charge, such as that of randomized response, has a cost but no
        # charge.
        if self._is_free:
            charges = ()
            price = self.cost_of(mechanism)
        else:
            price = self.public_charge(mechanism)
            charges = (price,)
            if price.part is not None:
                public = (*public, describe_part(price.part, config))
        is_seeded = not is_empty and self._random_state is not None
        for name, value in released.items():
            setattr(self._estimator, name, value)
        dataset, root = data_sets_of(self._accountant)
        statement = PrivacyStatement(
            estimator=self._label,
            epsilon=price.epsilon,
            delta=price.delta,
            relation=config.relation,
            unit=describe_unit(unit, config.max_rows, config.missing_ids),
            mechanism=mechanism.name,
            noise_scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            composition=_describe_composition_of(self._accountant, config, dataset, root),
            sampler=for_unit(sampler, unit),
            public=tuple(for_unit(text, unit) for text in public),
            seeded=is_seeded or any(charge.seeded for charge in charges),
            record=getattr(self.ledger_entry, "hash", ""),
            version=__version__,
            trust_model=trust_model,
            neighbors=describe_relation(
                config.relation, unit, config.max_rows, is_size_public=is_size_public
            ),
            dataset=root,
            ledger=ledger_of(self._accountant),
            noise_multiplier=getattr(mechanism, "noise_multiplier", None),
            stages=stages,
            charges=charges,
            is_fit=hasattr(self._estimator, "fit"),
            outputs=_outputs_of(self._estimator),
        )
        self._estimator.privacy_ = self._statement_of_model(statement)
        self._is_published = True

    def _statement_of_model(self, fit_statement):
        """Return the privacy statement of the fitted model.

        After several calls of `partial_fit`, it covers all of them; `fit_statement` is the
        statement of the last one.
        """
        return fit_statement

    def public_charge(self, mechanism):
        """Return this fit's charge as the statement shows it, without its user and purpose.

        Without an accountant, it is the charge that would have been made. Every call returns the
        same object, so that a report counts it once. Nothing is charged here.
        """
        if self._public_charge is not None:
            return self._public_charge
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
        self._public_charge = replace(charge, user="", purpose="", time="", sequence=0)
        return self._public_charge

    def _forget(self):
        """Remove the fitted attributes of a fit that failed; `PartialFit` restores earlier ones."""
        forget_fitted(self._estimator)


def fitted_names(estimator):
    """Return the names of an estimator's fitted attributes, which end in an underscore."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("__")]


def forget_fitted(estimator):
    """Delete an estimator's fitted attributes."""
    for name in fitted_names(estimator):
        delattr(estimator, name)


def _outputs_of(estimator):
    """Return the names of a fitted estimator's outputs, as in `PrivacyStatement`."""
    outputs = ()
    if hasattr(estimator, "predict"):
        outputs += (PREDICTIONS,)
    if hasattr(estimator, "transform"):
        outputs += (TRANSFORMED_ROWS,)
    return outputs


def data_sets_of(accountant):
    """Return the names of the data set that is charged, and of the one that bears the charge.

    They differ for a budget that was reserved from a data set. Without an accountant, both are "".
    """
    # Steps of a plan are charged to the ledger of the whole plan.
    accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
    if isinstance(accountant, PrivacyAccountant):
        return accountant._data_sets()
    dataset = getattr(accountant, "dataset", "") or ""
    return dataset, dataset


def ledger_of(accountant):
    """Return the identity of the ledger that is charged, "" without an accountant of skdp."""
    accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
    if isinstance(accountant, PrivacyAccountant):
        return accountant._ledger_identity()
    return ""


def _describe_composition_of(accountant, config, dataset, root):
    """Return a description of how a fit's cost adds up with the costs of others.

    `dataset` and `root` are the data sets of `data_sets_of`.
    """
    if accountant is None:
        return "none"
    plan = getattr(accountant, "plan", None)
    if isinstance(accountant, Allowance) and accountant.plan_charge is None:
        return f"{plan}; {NO_LEDGER}"
    description = describe_composition(config.composition)
    if dataset != root:
        description += (
            f"; the budget {dataset!r} was reserved from data set {root!r}, whose charges include "
            "all of it"
        )
    if plan is None:
        return description
    return f"{plan}; {description}"
