"""Private statistics of columns within bounds that are declared, or found in the same fit."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin

from skdp._data._tables import read_samples, read_table
from skdp.base import (
    TableEstimator,
    TableShape,
    guarantee_of,
    private_answer,
    private_fit_method,
    row_wise_answer,
)
from skdp.mechanisms._plan import MechanismPlan
from skdp.mechanisms._unknown_shape import names_in
from skdp.preprocessing._binning import input_names
from skdp.stats._release import plan_within_bounds
from skdp.utils._clipping import finite_doubles
from skdp.utils._output import asks_for_frame
from skdp.utils._validation import check_boolean


class PlannedTransformer(TransformerMixin, TableEstimator):
    """The fit of transformers by their plans.

    A pipeline asks three attributes which steps are paid for twice: `_rescales`, whether features
    are shifted or scaled; `_undoes_scaling`, whether the outcome is the same if they were before
    (not of one that does not center); and `_known_range`, whether the range of what comes out is
    known. What a class does not say is not so.
    """

    _public = ("bounds",)

    @private_fit_method
    def fit(self, X, y=None, *, groups=None):
        """Charge the accountant and release the statistics of all features.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows. Only `DPPCA` accepts a sparse matrix. Transformers that release sums read the rows
            block by block.
        y : None
            Ignored; present for compatibility with pipelines.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted transformer.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        return self._fit(X, y, groups)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the output's columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            The names of the input's columns; None takes those of the fitted table, or x0, x1, ...

        Returns
        -------
        ndarray of str
            A column's own name where one comes out of it. Where several do, its name, an
            underscore and what they are of: the number of a bin, a category, or a class. Last are
            those of pairs, both cells' with a space between them, and of indicators of what is
            missing, ``missingindicator_`` and the column's name, where these were asked for.
        """
        names = self._names_made(input_names(self, input_features), self._parts_of_columns())
        return np.array(names, dtype=object)

    def _parts_of_columns(self):
        """Return what comes out of each column in words; None where it is one from each."""

    def _names_made(self, names, parts, form=None):
        """Return the names of the output's columns.

        Parameters
        ----------
        names : sequence of str
            Those of the input's columns.
        parts : list of sequence, or None
            As `_parts_of_columns` returns it.
        form : TableForm, default=None
            That of the input, where nothing is fitted yet.
        """
        if parts is None:
            return [*names]
        pairs = zip(names, parts, strict=True)
        return [f"{name}_{part}" for name, own in pairs for part in own]

    def _output_form(self, form):
        """Return the form of the table that `transform` makes, from that of the input.

        A pipeline checks the steps that follow against it before the first charge. Nothing is
        fitted: what only a release tells is None. What follows from parameters and from the form
        of the input must be stated, as the steps that follow are checked no further than it goes.

        Parameters
        ----------
        form : TableForm

        Returns
        -------
        TableForm

        Raises
        ------
        ValueError
            If a fit would refuse a parameter.
        """
        has_names = form.names is not None or form.is_frame is False
        if form.names is None and form.is_frame is not False and form.n_columns is not None:
            # Parameters that call columns by name are right for some table.
            form = replace(form, names=names_in(self.get_params(deep=False), form.n_columns))
        names = self._planned_names(form)
        n_columns = None if names is None else len(names)
        is_named = has_names or isinstance(self, ClassNamePrefixFeaturesOutMixin)
        makes_frame = asks_for_frame(self)
        made = form.of_columns(n_columns, names=names if makes_frame and is_named else None)
        return replace(
            made,
            kinds=self._planned_kinds(form, n_columns),
            holds_numbers=self._makes_numbers(form),
            is_frame=makes_frame,
            is_sparse=self._makes_sparse,
        )

    # Whether `transform` makes a sparse matrix.
    _makes_sparse = False

    def _planned_names(self, form):
        """Return the names of the output's columns before a fit, None where it is found how many.

        Where the input's names are not known they hold others in their place.
        """
        if form.n_columns is None:
            return None
        parts = self._planned_parts(form)
        if parts is not None and any(own is None for own in parts):
            return None
        return self._names_made(planned_input_names(form), parts, form)

    def _planned_parts(self, form):
        """Return what `_parts_of_columns` will, with None for a column of which a fit finds it."""
        return None

    def _makes_numbers(self, form):
        """Return True if every column of the output is known to be of numbers."""
        return True

    def _planned_kinds(self, form, n_columns):
        """Return the kinds of the output's columns, None where they are all numbers, or unknown."""
        return None

    def _plan_of_size(self, n_rows, n_columns):
        """Return the plan of a fit to a table of which nothing but its size is known."""
        names = names_in(self.get_params(deep=False), n_columns)
        shape = TableShape(n_rows=n_rows, n_columns=n_columns, names=names)
        return self.plan_fit(shape, guarantee_of(self))


class BoundedColumnsTransformer(OneToOneFeatureMixin, PlannedTransformer):
    """A transformer that learns statistics of columns of numbers within bounds.

    Its plan is a `WithinBounds`, and its `_learned` makes attributes of what that returns.
    """

    _rescales = _undoes_scaling = True
    _read = read_table

    def _released(self, run, plan):
        return self._learned(run.released, *run.bounds, plan) | {"bounds_": run.bounds}

    def _clipped(self, X):
        """Return samples within the bounds: what one wild value does to a model is bounded."""
        return np.clip(read_samples(self, X), *self.bounds_)


class CenteringTransformer(BoundedColumnsTransformer):
    """Subtracts `_middle` and divides by `_spread`, unless they are None."""

    def _switches(self, *names):
        """Return parameters that switch the two on, of which one must."""
        switches = [check_boolean(getattr(self, name), name) for name in names]
        if not any(switches):
            raise ValueError(f"one of {' and '.join(names)} must be true")
        return switches

    @row_wise_answer
    def transform(self, X):
        """Subtract the middle of each feature and divide by its spread.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. Values are clipped to the bounds; results that overflow become the largest
            double.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = self._clipped(X)
        if self._middle is not None:
            X = X - self._middle
        return X if self._spread is None else finite_doubles(X / self._spread)

    @private_answer
    def inverse_transform(self, X):
        """Undo `transform`, except for clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = read_samples(self, X)
        if self._spread is not None:
            X = X * self._spread
        return X if self._middle is None else X + self._middle


def prefixed_names(estimator, n_columns):
    """Return the names that `ClassNamePrefixFeaturesOutMixin` gives to the output's columns."""
    prefix = type(estimator).__name__.lower()
    return [f"{prefix}{k}" for k in range(n_columns)]


def planned_input_names(form):
    """Return the names that the columns of a table of a form will have for a fitted transformer."""
    return [f"x{j}" for j in range(form.n_columns)] if form.names is None else [*form.names]


@dataclass(frozen=True, kw_only=True, eq=False)
class TransformerPlan(MechanismPlan):
    """What a transformer's fit will release, and whether its output will be sparse.

    Parameters
    ----------
    mechanism : mechanism
    sparse_output : bool, default=False
    """

    mechanism: object
    sparse_output: bool = False

    by_person = True

    def run(self, X, source, **shared):
        """Return what the mechanism releases, of which `_released` makes attributes."""
        return self.mechanism.run(X, source, **shared)


def plan_columns(estimator, kind, shape, guarantee, **fields):
    """Plan a statistic of columns within an estimator's `bounds`, declared or found.

    Parameters
    ----------
    estimator : estimator
    kind : type
        Of the statistic's plan, with `n_rows`, and bounds and a guarantee.
    shape : TableShape
    guarantee : Guarantee
    **fields
        Of the plan, beside these.

    Returns
    -------
    WithinBounds
    """
    plan = partial(kind, n_rows=shape.n_rows, **fields)
    return plan_within_bounds(plan, estimator.bounds, shape, guarantee)
