"""Dry runs of a pipeline's fit, in which each step reads its rows as it would before its charge.

Nothing is released, charged or stored. A dry run raises the errors that steps would raise for
their cells, before the first step of the fit is charged.
"""

import sys
from contextlib import contextmanager
from numbers import Real
from warnings import catch_warnings

import numpy as np
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion

from skdp._data._chunked import as_chunked
from skdp._data._frames import take_rows
from skdp._data._tables import check_not_empty
from skdp.base import TableEstimator, guarantee_of
from skdp.ledger import Allowance
from skdp.ledger._state import NotCopied
from skdp.pipeline._instances import (
    fitted_params,
    is_estimator,
    of_skdp,
    sklearn_name,
    step_message,
)
from skdp.pipeline._known import accepted_entry
from skdp.pipeline._steps import find_steps

# Parameters whose several values do not refer to columns.
NOT_BY_COLUMN = frozenset(
    "classes class_weight target_bounds feature_range quantile_range priors".split()
)


def verbose_params(model):
    """Return the `verbose` parameters of a model and its parts that are not 0 or False."""
    return {name: value for name, value in fitted_params(model, "verbose").items() if value}


def strip_callbacks(model):
    """Return a clone without callbacks and `verbose`, which would show rows or count fits.

    Parameters
    ----------
    model : estimator
        A clone, which is changed.

    Returns
    -------
    estimator
        The same object.
    """
    silent = {}
    for name, value in verbose_params(model).items():
        silent[name] = False if isinstance(value, bool) else 0
    model.set_params(**silent)
    for part in (model, *fitted_params(model).values()):
        if hasattr(part, "set_callbacks"):
            part.set_callbacks()
    return model


@contextmanager
def suppress_fit_output():
    """Suppress warnings and joblib's progress lines within a `with` block.

    The text of a warning and the number of warnings may depend on private rows.
    """
    with catch_warnings(action="ignore"), parallel_config(verbose=0):
        yield


class DryRunStep(NotCopied, TransformerMixin, BaseEstimator):
    """A step of a dry run, which reads rows as the step that it replaces does before its charge.

    The output of a private step is not known before its charge, so this step returns a table
    without columns. Later steps receive only the columns that bypass private steps, and the cells
    that an imputer passes on.

    Parameters
    ----------
    name : str
        Name of the step.
    estimator : estimator
    n_units : int or None
        Number of rows, or of persons, for which the fit is planned; None uses that of the table.
    is_private : bool
    makes_plan : bool
        False if the step only checks its cells. Either some of its columns are missing, because a
        private step precedes it, or its accountant cannot be replaced for the dry run.
    """

    def __init__(self, name, estimator, n_units, is_private, makes_plan):
        # scikit-learn stores the configuration of `set_output` among the attributes.
        vars(self).update(vars(estimator))
        self.name = name
        self.estimator = estimator
        self.n_units = n_units
        self.is_private = is_private
        self.makes_plan = makes_plan
        self.made = None

    def fit(self, X, y=None, **params):
        """Read the table; errors name the step."""
        try:
            return self._read(X, y, **params)
        except ValueError as error:
            title = self.name or type(self.estimator).__name__
            raise ValueError(step_message(title, error)) from error

    def _read(self, X, y, **params):
        """Read the table as the step would, and set `made`, the output of this step.

        Returns
        -------
        DryRunStep
            The object itself.
        """
        self.made = np.empty((X.shape[0], 0))
        # A one-dimensional table is passed on; the step itself raises the error.
        if len(X.shape) == 2 and not X.shape[1]:
            return self
        if not self.is_private:
            self._transform_rest(X, y)
        # A third-party estimator has no dry run: its fit could charge.
        elif of_skdp(self.estimator) and self.makes_plan:
            self.estimator._dry_run(X, y, n_units=self.n_units, **params)
            if _passes_cells_on(self.estimator) and as_chunked(X) is None:
                self.made = self.estimator._cells_passed_on(X)
        # A search does not read cells itself; its candidates do.
        elif of_skdp(self.estimator) and isinstance(self.estimator, TableEstimator):
            # Its parameters were checked earlier. It reads the cells of the columns that exist.
            self._read_cells(clone(self.estimator), X, y)
        return self

    def _read_cells(self, estimator, X, y):
        """Read a table with missing columns in the way that the estimator reads whole tables."""
        table = estimator._read_table(X, y)
        if _has_values_by_column(estimator):
            return
        try:
            plan = estimator.plan_fit(table.shape, guarantee_of(self.estimator))
        except ValueError:
            # The estimator needs the missing columns, for example for its number of components.
            return
        estimator._check_rows(table.rows, plan)

    def _transform_rest(self, X, y):
        """Apply a step that learns nothing to the columns that bypass private steps."""
        # A list with one entry per column does not match a table in which columns are missing.
        by_column = _has_values_by_column(self.estimator)
        # Steps from other libraries are left out, because they may need a data frame.
        is_allowed = sklearn_name(self.estimator) and accepted_entry(self.estimator)
        if is_allowed and not by_column:
            step = clone(self.estimator)
            if hasattr(step, "set_output"):
                step.set_output(transform="default")
            self.made = step.fit_transform(X, y)

    def transform(self, X):
        return self.made

    def get_feature_names_out(self, input_features=None):
        """Return the name of the step with a number for each column of its output."""
        # Names must differ if the outputs of several steps are joined.
        return np.asarray([f"{self.name} {j}" for j in range(self.made.shape[1])], dtype=object)

    def get_metadata_routing(self):
        return self.estimator.get_metadata_routing()


def _has_values_by_column(estimator):
    """Return True if a parameter may have one value per column."""
    return any(
        isinstance(value, list | tuple | dict | np.ndarray)
        for name, value in estimator.get_params().items()
        if not (name in NOT_BY_COLUMN or (name == "bounds" and _is_pair(value)))
    )


def _is_pair(bounds):
    """Return True for bounds (low, high) that hold for all columns."""
    return isinstance(bounds, tuple) and all(isinstance(bound, Real) for bound in bounds)


def _passes_cells_on(estimator):
    """Return True for an imputer whose output consists of the cells that it receives."""
    return getattr(estimator, "_passes_cells_on", False)


class UnreadColumns(NotCopied, TransformerMixin, BaseEstimator):
    """Replacement of a `ColumnTransformer` behind a private step: its columns do not exist yet."""

    def fit(self, X, y=None, **params):
        return self

    def transform(self, X):
        return np.empty((X.shape[0], 0))


def make_dry_run(model, steps, private, n_units=None, *, unplanned=()):
    """Return a pipeline whose fit does only what its private steps do before their charges.

    Parameters
    ----------
    model : estimator
        A clone, whose private steps have allowances without a ledger, or no accountant.
    steps : list of Step
        Steps of the pipeline.
    private : set of str
        Names of the private steps.
    n_units : int, default=None
        Number of rows, or of persons, for which fits are planned; None uses that of the table.
    unplanned : set of str, default=()
        Names of private steps that only check their cells and make no plan.

    Returns
    -------
    estimator
        The same object, with replaced steps.
    """
    params = {"": model} | model.get_params()
    for container in params.values():
        if hasattr(container, "judges_steps"):
            container.judges_steps = False
    parts = {}
    hiding = {name for name in private if not _passes_cells_on(params[name])}
    for step in steps:
        is_behind = bool(hiding.intersection(step.before))
        # Other estimators behind a private step are also replaced: their effect on a table in
        # which columns are missing is unknown.
        if step.name in private or (is_behind and is_estimator(step.estimator)):
            is_private = step.name in private
            makes_plan = not is_behind and step.name not in unplanned
            estimator = params[step.name]
            parts[step.name] = DryRunStep(step.name, estimator, n_units, is_private, makes_plan)
    if "" in parts:
        return parts[""]
    behind = _column_transformers_behind(params, steps, private)
    return model.set_params(**_outside(parts, behind), **behind)


def _column_transformers_behind(params, steps, private):
    """Return a dict from the column transformers behind private steps to replacements."""
    unread = {}
    for name, part in params.items():
        if isinstance(part, ColumnTransformer):
            inside = [step for step in steps if step.name.startswith(f"{name}__")]
            if inside and all(private.intersection(step.before) for step in inside):
                unread[name] = UnreadColumns()
    return _outside(unread, unread)


def _outside(parts, replaced):
    """Return the parts that are outside of the replaced containers."""
    return {
        name: part
        for name, part in parts.items()
        if not any(name.startswith(f"{outer}__") for outer in replaced)
    }


def read_raw_cells(container, X, y, params):
    """Raise the errors of steps that receive columns of the raw table, before the first charge.

    The first step reads its table before the first charge anyway. So this is only done if some
    columns bypass it and go to other steps, or if an imputer passes its cells on.

    Parameters
    ----------
    container : Pipeline, ColumnTransformer or FeatureUnion
        Its private steps have handles of a plan, or no accountant.
    X, y, params
        Arguments of its `fit`.

    Raises
    ------
    ValueError
        If a step refuses a cell, the table or its target.
    """
    inside = [container, *container.get_params().values()]
    selects = any(isinstance(part, ColumnTransformer | FeatureUnion) for part in inside)
    if not (selects or any(map(_passes_cells_on, inside))):
        return
    if any(map(makes_polars_frames, inside)) and not supports_empty_rows(sys.modules.get("polars")):
        return
    steps = find_steps(container)
    private = {step.name for step in steps if step.kind == "private"}
    # A step that learns nothing may also raise an error for a cell, so every estimator counts.
    if not private or sum(is_estimator(step.estimator) for step in steps) < 2:
        return
    model = strip_callbacks(clone(container))
    model.checks_fits = False
    model.set_params(**dict.fromkeys(fitted_params(model, "memory")))
    unplanned = set()
    for step in steps:
        if step.name in private and step.params["accountant"] is not None:
            handle = step.params["accountant"]
            if hasattr(handle, "planned"):
                allowance = Allowance(handle.planned, handle.config, None)
                model.set_params(**{step.parameter("accountant"): allowance})
            else:
                # The user replaced the handle with an accountant, which a plan would charge.
                unplanned.add(step.name)
    table = as_chunked(X)
    is_partitioned = table is not None
    if not is_partitioned:
        if hasattr(X, "shape"):
            table = X
        else:
            table = np.asarray(X, dtype=object)
        check_not_empty(table.shape, X)
        if not all(of_skdp(step.estimator) for step in steps if is_estimator(step.estimator)):
            # Third-party steps may write into the table that they receive, so they get a copy.
            table = take_rows(table, np.arange(table.shape[0]))
    try:
        with suppress_fit_output(), parallel_config("sequential"):
            make_dry_run(model, steps, private, unplanned=unplanned).fit(table, y, **params)
    finally:
        if is_partitioned and table is not X:
            table.close()


def makes_polars_frames(part):
    """Return True if `set_output` of a step or a container is "polars"."""
    return getattr(part, "_sklearn_output_config", {}).get("transform") == "polars"


def supports_empty_rows(polars):
    """Return True if polars can represent rows without columns, which dry runs need."""
    return polars is not None and polars.DataFrame(np.empty((1, 0))).height == 1
