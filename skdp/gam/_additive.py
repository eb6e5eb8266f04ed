"""Base classes of additive models: fits by a plan, scores, and explanations."""

import copy
import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
from sklearn import get_config
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_columns
from skdp._data._kinds import read_kinds
from skdp._data._tables import RowsAndTarget
from skdp.base import ReadTable, TableEstimator
from skdp.gam import _shapes
from skdp.gam._blocks import check_interactions
from skdp.gam._explanation import Explanation
from skdp.gam._interaction_plan import AUTO_TABLES, InteractionFit, is_choice_useful
from skdp.gam._plan import AdditiveFit, plan_additive
from skdp.linear_model._planning import ExpectedLossMixin
from skdp.preprocessing._binning import input_names
from skdp.stats._categories import first_labels
from skdp.stats._column_cells import (
    cell_reader,
    check_labels_served,
    declared_columns,
    served_blocks,
)
from skdp.utils._validation import as_doubles, check_choice, check_integer, check_verbose, is_auto
from skdp.utils._values import FrozenValue

# Default number of bins of a numeric column.
N_BINS = 32


@dataclass(frozen=True, eq=False)
class FittedTerms(FrozenValue):
    """Released terms of an additive model or a forest, with their values.

    Parameters
    ----------
    terms : list of Term or Tree
    values : list of ndarray of shape (*shape of a term's cells, n_outputs)
        Value of each cell of each term.
    constant : ndarray of shape (n_outputs,)
        Score of a row without the values of its cells.
    stds : list of ndarray, default=None
        Standard errors of the values, in arrays of the same shapes; None if unknown.
    class_weight : ndarray of shape (n_classes,), default=None
        Released balanced class weights.
    """

    terms: list
    values: list
    constant: np.ndarray
    stds: list | None = None
    class_weight: np.ndarray | None = None

    def with_target_scale(self, scale):
        """Return the terms in the units of targets, from terms of scaled targets."""
        values = [scale.half_range * term_values for term_values in self.values]
        constant = scale.offset + scale.half_range * self.constant
        stds = None
        if self.stds is not None:
            stds = [scale.half_range * term_stds for term_stds in self.stds]
        return replace(self, values=values, constant=constant, stds=stds)

    def with_log_target_scale(self, scale):
        """Return terms of logarithms of targets, from terms of logarithms of scaled targets."""
        return replace(self, constant=self.constant + math.log(scale.half_range))

    def without_output_axis(self):
        """Return the terms, without the axis of outputs if there is only one output."""
        if len(self.constant) > 1:
            return self
        values = [term_values[..., 0] for term_values in self.values]
        stds = None
        if self.stds is not None:
            stds = [term_stds[..., 0] for term_stds in self.stds]
        return replace(self, values=values, constant=self.constant[0], stds=stds)


class RawTableModel(TableEstimator):
    """Base of models for raw tables with numeric, categorical and date columns.

    The plan is that of a `ColumnsFit`; the `run` of each of its subclasses documents what it
    returns.
    """

    _accepts = ("categorical", "string", "allow_nan")
    _public: ClassVar[tuple[str, ...]] = ("bounds", "categories")
    _also_public = ("the columns' types and names",)

    def _check_rows(self, rows, plan):
        plan.mechanism.check(rows.X)

    def _read_table(self, X, y=None):
        """Return the `ReadTable` of the columns and the target."""
        columns, kinds = read_kinds(self, X)
        classes, targets = self._read_target(y, columns.shape[0])
        shape = self._shape_of(columns, classes=classes, kinds=kinds)
        return ReadTable(rows=RowsAndTarget(columns, targets), shape=shape)

    def _columns(self, shape):
        """Return the `Column` of each column of a table of this shape."""
        kinds = shape.kinds or [None] * shape.n_columns
        return declared_columns(kinds, self.bounds, self.categories, shape.names)

    def _make_fit(self, fit_class, shape, guarantee, **params):
        """Return a `ColumnsFit` of this class for a table of this shape."""
        return fit_class(
            columns=self._columns(shape), n_rows=shape.n_rows, guarantee=guarantee, **params
        )

    def _iter_cells(self, X):
        """Yield the shape functions' cells for one block of samples at a time.

        Yields
        ------
        ndarray of shape (n_terms, n_rows), dtype int64
        """
        table = read_columns(self, X, reset=False, allow_nan=True)
        shapes = self.shape_functions_
        check_labels_served(self, table, self._served_categories())
        read = cell_reader(shapes, checks=True)
        for rows in served_blocks(table, len(shapes)):
            yield read(table, rows)

    def _served_categories(self):
        """Return the categories of each categorical column."""
        return {
            j: edges
            for shape in self.shape_functions_
            for j, kind, edges in zip(shape.features, shape.kinds, shape.edges, strict=True)
            if kind == "label"
        }

    def _example_labels(self):
        return first_labels(self._served_categories())

    def _iter_contributions(self, X):
        """Yield the cells of a block of samples, and the contributions of the shape functions.

        Yields
        ------
        cells : ndarray of shape (n_terms, n_rows), dtype int64
        contributions : ndarray of shape (n_rows, n_terms) or (n_rows, n_terms, n_classes)
        """
        check_is_fitted(self)
        outputs = np.shape(self.intercept_)
        term_values = [shape.values.reshape(-1, *outputs) for shape in self.shape_functions_]
        # The values of all terms are concatenated; a row selects one value of each term.
        values = np.concatenate(term_values)
        ends = np.cumsum([len(table) for table in term_values])
        offsets = np.append(0, ends[:-1])
        for cells in self._iter_cells(X):
            # NumPy's order of summation depends on the memory layout. With C order, the score of a
            # row does not depend on the other rows.
            indices = np.ascontiguousarray(cells.T + offsets)
            yield cells, np.ascontiguousarray(values[indices])


class TermsModel(RawTableModel):
    """Base of models whose scores are computed from `shape_functions_` and `intercept_`.

    The fit has `no_interaction` and may have `signs`.
    """

    def _centered_shapes(self, fit, fitted):
        """Return the shape functions, each with mean 0 over the released counts, and the intercept.

        Parameters
        ----------
        fit : ColumnsFit
        fitted : FittedTerms
            Fitted terms, whose constant becomes the intercept.
        """
        names = input_names(self, None)
        shapes = _shapes.make_shape_functions(fitted.terms, fitted.values, names, fitted.stds)
        for j in fit.no_interaction:
            shapes[j] = _shapes.monotone(shapes[j], fit.signs[j])
        return _shapes.centered(shapes, fitted.constant)

    def _importances(self, shapes):
        """Return the importance of each feature; both features of a pair share its importance."""
        total = np.zeros(self.n_features_in_)
        for shape in shapes:
            total[[*shape.features]] += _shapes.importance(shape) / len(shape.features)
        if not total.any():
            return total
        return total / total.sum()

    def explain(self, X):
        """Return the contribution of each term to the score of each sample.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        Explanation
            An array of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes) with `names`,
            `values` and ``to_pandas()``. Contributions are in the order of `shape_functions_`.
            Their sum plus `intercept_` is the score of the sample: the result of
            ``decision_function``, or the prediction of a regressor before it is clipped to
            `target_bounds`; with ``loss="poisson"``, the logarithm of that prediction.
        """
        blocks = [contributions for _, contributions in self._iter_contributions(X)]
        index = None
        if type(X).__module__.partition(".")[0] == "pandas":
            index = X.index
        selected = getattr(self, "_sklearn_output_config", {}).get("transform")
        return Explanation(
            np.concatenate(blocks),
            [shape.name for shape in self.shape_functions_],
            outputs=_shapes.output_names(self),
            intercept=self.intercept_,
            container=selected or get_config()["transform_output"],
            index=index,
        )

    def set_output(self, *, transform=None):
        """Select the container of the `values` of explanations.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            "default" is an array. None changes nothing. Before the first call,
            ``sklearn.set_config(transform_output=...)`` determines the container.

        Returns
        -------
        self : estimator
        """
        if transform is not None:
            check_choice(transform, "transform", ("default", "pandas", "polars"))
            # scikit-learn's `clone` copies the attribute with this name.
            self._sklearn_output_config = {"transform": transform}
        return self

    def _scores(self, X):
        """Return the scores of samples, of shape (n_samples, ...) as `intercept_`."""
        scores = []
        for _, contributions in self._iter_contributions(X):
            scores.append(contributions.sum(axis=1))
        return np.concatenate(scores) + self.intercept_

    def edit(self, term, values):
        """Return a copy of the fitted model in which the values of one term are replaced.

        Parameters
        ----------
        term : str or int
            Name of a shape function, or its index in `shape_functions_`.
        values : array-like
            Finite values of the same shape, or a single number; 0 removes the term.

        Returns
        -------
        estimator
            Edited copy. Its `privacy_` is that of the fit, which is correct unless the new values
            were computed from the data.

        Raises
        ------
        ValueError
            If the term does not exist or the values have another shape.
        """
        check_is_fitted(self)
        index = _shapes.term_index(self.shape_functions_, term)
        shapes = list(self.shape_functions_)
        shape = shapes[index].values.shape
        new_values = as_doubles(values)
        if new_values.shape not in (shape, ()) or not np.isfinite(new_values).all():
            raise ValueError(f"values must be finite numbers of shape {shape}, got {values!r}")
        new_values = np.broadcast_to(new_values, shape).copy()
        shapes[index] = replace(shapes[index], values=new_values, standard_errors=None)
        edited = copy.copy(self)
        edited.shape_functions_ = shapes
        edited.feature_importances_ = self._importances(shapes)
        return edited

    def _html_repr(self):
        """Return the HTML of `ReprHTMLMixin` in scikit-learn."""
        if hasattr(self, "privacy_"):
            return _shapes.model_document(self)
        return super()._html_repr()


class PrivateAdditiveModel(ExpectedLossMixin, TermsModel):
    """Base of additive models fitted by gradients: their parameters and their plan."""

    _public = (*TermsModel._public, "monotonic_cst")

    def _plan(self, task, shape, guarantee):
        """Return the plan of a task on a table of this shape."""
        check_verbose(self.verbose)
        if task.n_outputs > 1 and self.monotonic_cst is not None:
            raise ValueError("monotonic_cst is supported for two classes only")
        declared, n_chosen = check_interactions(self.interactions, shape.names, shape.n_columns)
        n_bins = N_BINS
        if not is_auto(self.n_bins):
            n_bins = check_integer(self.n_bins, "n_bins", 2, 1024)
        columns = self._columns(shape)
        signs = _shapes.check_monotonic_cst(self.monotonic_cst, shape.names, columns)
        make_fit = partial(
            self._make_fit, shape=shape, guarantee=guarantee, n_bins=n_bins, task=task, signs=signs
        )
        fit = make_fit(AdditiveFit, declared_pairs=declared)
        if fit.no_interaction & set(sum(declared, ())):
            raise ValueError("interactions: a column of monotonic_cst cannot be in a pair")
        if n_chosen is None:
            n_chosen = 0
            if is_choice_useful(fit):
                n_chosen = AUTO_TABLES
        n_candidates = math.comb(shape.n_columns - len(fit.no_interaction), 2)
        n_chosen = min(n_chosen, n_candidates)
        if n_chosen:
            fit = make_fit(InteractionFit, n_chosen=n_chosen)
        return plan_additive(fit)

    def _total_excess_loss(self, plan):
        # This takes as long as the rest of the plan, so it is computed only on request.
        return plan.mechanism.total_excess_loss
