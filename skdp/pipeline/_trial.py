"""Trials of a pipeline's fit: each step reads its rows as it does before its charge.

Nothing is released or charged, and nothing is kept. What a step raises for its cells is raised
before the first step of the fit is charged.
"""

import sys
from contextlib import contextmanager
from warnings import catch_warnings

import numpy as np
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion

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
from skdp.utils._chunked import as_chunked
from skdp.utils._frames import take_rows


def told_by_params(model):
    """Return the parameters that make a model print something at each fit."""
    return {name: value for name, value in fitted_params(model, "verbose").items() if value}


def quiet(model):
    """Take from a clone what would see rows or count fits: callbacks and `verbose`.

    Parameters
    ----------
    model : estimator
        A clone.

    Returns
    -------
    estimator
        The same.
    """
    told = told_by_params(model).items()
    model.set_params(**{name: False if isinstance(value, bool) else 0 for name, value in told})
    for part in (model, *fitted_params(model).values()):
        if hasattr(part, "set_callbacks"):
            part.set_callbacks()
    return model


@contextmanager
def silence():
    """Keep the warnings of fits, and joblib's progress, which would count them.

    What a warning says can be private, and so can the number of warnings.
    """
    with catch_warnings(action="ignore"), parallel_config(verbose=0):
        yield


class StepReader(NotCopied, TransformerMixin, BaseEstimator):
    """A step of a trial, which reads rows as the step that it replaces does before its charge.

    A private step's output is not known before its charge, so a table without columns comes out
    of it. The steps behind it are given the columns alone that bypass private steps.

    Parameters
    ----------
    name : str
        The step's name.
    estimator : estimator
    n_units : int or None
        The number of rows, or of persons, that the fit is planned for; None takes the table's.
    is_private : bool
    makes_plan : bool
        False if it only looks at cells: a private step stands before it, so that some of its
        columns are missing, or it cannot be charged on trial.
    """

    def __init__(self, name, estimator, n_units, is_private, makes_plan):
        # scikit-learn keeps what `set_output` was told among the attributes.
        vars(self).update(vars(estimator))
        self.name = name
        self.estimator = estimator
        self.n_units = n_units
        self.is_private = is_private
        self.makes_plan = makes_plan
        self.made = None

    def fit(self, X, y=None, **params):
        try:
            return self._read(X, y, **params)
        except ValueError as error:
            raise ValueError(step_message(self.name, error)) from error

    def _read(self, X, y, **params):
        self.made = np.empty((X.shape[0], 0))
        # A table of one dimension is for the step itself to refuse.
        if len(X.shape) == 2 and not X.shape[1]:
            return self
        if not self.is_private:
            self._transform_rest(X, y)
        # What an estimator of somebody else's does before its charge is not known.
        elif of_skdp(self.estimator) and self.makes_plan:
            self.estimator._dry_run(X, y, n_units=self.n_units, **params)
        elif of_skdp(self.estimator) and hasattr(self.estimator, "_read_table"):
            # Its parameters were checked; of the columns that are there it reads the cells.
            clone(self.estimator)._read_table(X, y)
        return self

    def _transform_rest(self, X, y):
        """Do what a step that learns nothing does, with the columns that bypass private steps."""
        lists = (list, tuple, dict, np.ndarray)
        by_column = any(isinstance(v, lists) for v in self.estimator.get_params().values())
        # A list of one entry a column is for all columns.
        # Steps of other libraries may need a data frame.
        is_known = sklearn_name(self.estimator) and accepted_entry(self.estimator)
        if is_known and not by_column:
            step = clone(self.estimator)
            if hasattr(step, "set_output"):
                step.set_output(transform="default")
            self.made = step.fit_transform(X, y)

    def transform(self, X):
        return self.made

    def get_feature_names_out(self, input_features=None):
        # Names must differ where several steps' tables are joined.
        return np.asarray([f"{self.name} {j}" for j in range(self.made.shape[1])], dtype=object)

    def get_metadata_routing(self):
        return self.estimator.get_metadata_routing()


class UnreadColumns(NotCopied, TransformerMixin, BaseEstimator):
    """A `ColumnTransformer` behind a private step, in a trial: its columns are not there yet."""

    def fit(self, X, y=None, **params):
        return self

    def transform(self, X):
        return np.empty((X.shape[0], 0))


def trial_of(model, steps, private, n_units=None, *, unplanned=()):
    """Return a pipeline whose fit reads the rows that its private steps are given before a charge.

    Parameters
    ----------
    model : estimator
        A clone, whose private steps have allowances of nobody's, or no accountant.
    steps : list of Step
        Of the pipeline.
    private : set of str
        The names of the private ones.
    n_units : int, default=None
        The number of rows, or of persons, that the fits are planned for; None takes the table's.
    unplanned : set of str, default=()
        The names of private steps that only look at their cells, and make no plan.

    Returns
    -------
    estimator
        The model, changed.
    """
    params = {"": model} | model.get_params()
    for container in params.values():
        if hasattr(container, "judges_steps"):
            container.judges_steps = False
    parts = {}
    for step in steps:
        is_behind = bool(private.intersection(step.before))
        # What a step of somebody else's, behind a private one, makes of a part of its columns
        # is not known.
        if step.name in private or (is_behind and is_estimator(step.estimator)):
            is_private = step.name in private
            makes_plan = not is_behind and step.name not in unplanned
            estimator = params[step.name]
            parts[step.name] = StepReader(step.name, estimator, n_units, is_private, makes_plan)
    if "" in parts:
        return parts[""]
    behind = _column_transformers_behind(params, steps, private)
    return model.set_params(**_outside(parts, behind), **behind)


def _column_transformers_behind(params, steps, private):
    """Return an `UnreadColumns` for each column transformer behind a private step, by name."""
    unread = {}
    for name, part in params.items():
        if isinstance(part, ColumnTransformer):
            inside = [step for step in steps if step.name.startswith(f"{name}__")]
            if inside and all(private.intersection(step.before) for step in inside):
                unread[name] = UnreadColumns()
    return _outside(unread, unread)


def _outside(parts, replaced):
    """Return the parts that are in none of the containers that are replaced."""
    return {
        name: part
        for name, part in parts.items()
        if not any(name.startswith(f"{outer}__") for outer in replaced)
    }


def read_raw_cells(container, X, y, params):
    """Let each step of a container read the columns of the raw table that it is given.

    A step that stands first reads its own table before the first charge anyway. So nothing is
    done where no columns go around it, to other steps.

    Parameters
    ----------
    container : Pipeline, ColumnTransformer or FeatureUnion
        Whose private steps have handles of a plan, or no accountant.
    X, y, params
        As its `fit` is given them.

    Raises
    ------
    ValueError
        If a step would refuse a cell, the table or its target.
    """
    inside = [container, *container.get_params().values()]
    if not any(isinstance(part, ColumnTransformer | FeatureUnion) for part in inside):
        return
    if any(map(_makes_polars_frames, inside)) and not _can_have_rows_alone(
        sys.modules.get("polars")
    ):
        return
    steps = find_steps(container)
    private = {step.name for step in steps if step.kind == "private"}
    # A step that learns nothing may refuse a cell, too.
    if not private or sum(is_estimator(step.estimator) for step in steps) < 2:
        return
    model = quiet(clone(container))
    model.checks_fits = False
    model.set_params(**dict.fromkeys(fitted_params(model, "memory")))
    unplanned = set()
    for step in steps:
        if step.name in private and step.params["accountant"] is not None:
            handle = step.params["accountant"]
            if hasattr(handle, "planned"):
                own = Allowance(handle.planned, handle.config, None)
                model.set_params(**{step.parameter("accountant"): own})
            else:
                # An accountant that was put in the place of the handle would be charged.
                unplanned.add(step.name)
    table = as_chunked(X)
    is_in_parts = table is not None
    if not is_in_parts:
        table = X if hasattr(X, "shape") else np.asarray(X, dtype=object)
        if not all(of_skdp(step.estimator) for step in steps if is_estimator(step.estimator)):
            # Other steps may write into the rows that they are given.
            table = take_rows(table, np.arange(table.shape[0]))
    try:
        with silence(), parallel_config("sequential"):
            trial_of(model, steps, private, unplanned=unplanned).fit(table, y, **params)
    finally:
        if is_in_parts and table is not X:
            table.close()


def _makes_polars_frames(part):
    """Say whether `set_output` asked a step or a container for polars frames."""
    return getattr(part, "_sklearn_output_config", {}).get("transform") == "polars"


def _can_have_rows_alone(polars):
    """Say whether a polars frame without columns can have rows, as tables of a trial have."""
    return polars is not None and polars.DataFrame(np.empty((1, 0))).height == 1
