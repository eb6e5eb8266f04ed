"""What additive models share: the fit by a plan, scores, and the reasons for them."""

import copy
import math
from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_columns
from skdp._data._kinds import read_kinds
from skdp._data._tables import RowsAndTarget
from skdp.base import ReadTable, TableEstimator, private_fit_method
from skdp.gam import _shapes
from skdp.gam._blocks import check_interactions
from skdp.gam._columns import cell_reader, check_labels_served, declared_columns, served_blocks
from skdp.gam._plan import AdditivePlan
from skdp.linear_model._planning import ExpectedLossMixin
from skdp.preprocessing._binning import input_names
from skdp.preprocessing._categories import first_labels
from skdp.utils._validation import as_doubles, check_integer, check_verbose, is_auto

N_BINS = 32
# Of interactions="auto", where there are any.
AUTO_PAIRS = 5


class RawTableModel(TableEstimator):
    """A model of raw tables, whose columns are numbers, labels or dates.

    Its plan is a `ColumnsPlan`, whose ``run`` returns terms, their values and a constant.
    """

    _accepts = ("categorical", "string", "allow_nan")
    _public = ("bounds", "categories")
    _also_public = ("the columns' types and names",)

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Charge the accountant and fit the model.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or a source of it, of shape (n_samples, n_features)
            Rows with numeric, categorical and date columns. Missing values (NaN, None) are allowed.
        y : array-like of shape (n_samples,)
            Class labels of a classifier, or numeric targets of a regressor, which are clipped to
            `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        return self._fit(X, y, groups)

    def _check_rows(self, rows, plan):
        plan.check(rows.X)

    def _read_table(self, X, y=None):
        columns, kinds = read_kinds(self, X)
        classes, targets = self._read_target(y, columns.shape[0])
        shape = self._shape_of(columns, classes=classes, kinds=kinds)
        return ReadTable(rows=RowsAndTarget(columns, targets), shape=shape)

    def _columns(self, shape):
        """Return what is known of the columns of a table of that shape."""
        kinds = shape.kinds or ["cells"] * shape.n_columns
        return declared_columns(kinds, self.bounds, self.categories, shape.names)

    def _plan_of(self, kind, shape, guarantee, **more):
        """Return a plan of some kind for a table of that shape."""
        return kind(columns=self._columns(shape), n_rows=shape.n_rows, guarantee=guarantee, **more)

    def _released(self, run, plan):
        terms, values, constant = run
        if len(constant) == 1:
            values = [own[..., 0] for own in values]
            constant = constant[0]
        attributes = self._attributes(terms, values, constant, plan)
        if hasattr(plan, "noise_multiplier"):
            attributes["noise_multiplier_"] = plan.noise_multiplier
        return attributes

    def _cells(self, X):
        """Yield the cells of the shape functions, of a block of samples at a time.

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
        """Return the categories of each column of labels."""
        return {
            j: edges
            for shape in self.shape_functions_
            for j, kind, edges in zip(shape.features, shape.kinds, shape.edges, strict=True)
            if kind == "label"
        }

    def _example_labels(self):
        return first_labels(self._served_categories())

    def _cells_and_parts(self, X):
        """Yield the cells of a block of samples, and what each shape function adds to its scores.

        Yields
        ------
        cells : ndarray of shape (n_terms, n_rows), dtype int64
        parts : ndarray of shape (n_rows, n_terms) or (n_rows, n_terms, n_classes)
        """
        check_is_fitted(self)
        outputs = np.shape(self.intercept_)
        tables = [shape.values.reshape(-1, *outputs) for shape in self.shape_functions_]
        # The values of all terms, one term after another: a row takes one of each.
        values = np.concatenate(tables)
        ends = np.cumsum([len(table) for table in tables])
        starts = np.append(0, ends[:-1])
        for cells in self._cells(X):
            # In C order: by it numpy decides how the parts of a row are added up.
            places = np.ascontiguousarray(cells.T + starts)
            yield cells, np.ascontiguousarray(values[places])


class TermsModel(RawTableModel):
    """Scores and reasons from `shape_functions_` and `intercept_`.

    A model's plan has `unpaired`, and may have `signs`.
    """

    def _attributes(self, terms, values, constant, plan):
        shapes = _shapes.shape_functions(terms, values, input_names(self, None))
        for j in plan.unpaired:
            shapes[j] = _shapes.monotone(shapes[j], plan.signs[j])
        shapes, constant = _shapes.centered(shapes, constant)
        return {
            "shape_functions_": shapes,
            "intercept_": constant,
            "feature_importances_": self._importances(shapes),
        }

    def _importances(self, shapes):
        total = np.zeros(self.n_features_in_)
        for shape in shapes:
            total[[*shape.features]] += _shapes.importance(shape) / len(shape.features)
        return total / total.sum() if total.any() else total

    def explain(self, X):
        """Return what each term adds to the score of each sample.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
            In the order of `shape_functions_`. With `intercept_` a row adds up to the sample's
            score: the result of ``decision_function``, or the prediction of a regressor before it
            is clipped to `target_bounds`.
        """
        return np.concatenate([parts for _, parts in self._cells_and_parts(X)])

    def _scores(self, X):
        scores = [parts.sum(axis=1) for _, parts in self._cells_and_parts(X)]
        return np.concatenate(scores) + self.intercept_

    def edit(self, term, values):
        """Return a copy of the fitted model in which one term has other values.

        Parameters
        ----------
        term : str or int
            The name of a shape function, or its place in `shape_functions_`.
        values : array-like
            Finite, of the shape of its values, or one number; 0 takes the term out.

        Returns
        -------
        estimator
            Its `privacy_` is that of the fit, if the values do not depend on the data otherwise.

        Raises
        ------
        ValueError
            If there is no such term, or the values are of another shape.
        """
        check_is_fitted(self)
        place = _shapes.place_of(self.shape_functions_, term)
        shapes = list(self.shape_functions_)
        shape = shapes[place].values.shape
        new = as_doubles(values)
        if new.shape not in (shape, ()) or not np.isfinite(new).all():
            raise ValueError(f"values must be numbers of shape {shape}, got {values!r}")
        shapes[place] = replace(shapes[place], values=np.broadcast_to(new, shape).copy())
        edited = copy.copy(self)
        edited.shape_functions_ = shapes
        edited.feature_importances_ = self._importances(shapes)
        return edited

    def _html_repr(self):
        """Return what scikit-learn's `ReprHTMLMixin` asks for."""
        return _shapes.model_document(self) if hasattr(self, "privacy_") else super()._html_repr()


class PrivateAdditiveModel(ExpectedLossMixin, TermsModel):
    """The parameters of additive models that are fitted in steps, and their plan."""

    _public = (*TermsModel._public, "monotonic_cst")

    def _plan(self, task, shape, guarantee):
        """Return the plan of a task on a table of that shape."""
        check_verbose(self.verbose)
        if task.n_outputs > 1 and self.monotonic_cst is not None:
            raise ValueError("monotonic_cst is for two classes only")
        declared, n_chosen = check_interactions(self.interactions, shape.names, shape.n_columns)
        n_bins = N_BINS if is_auto(self.n_bins) else check_integer(self.n_bins, "n_bins", 2, 1024)
        signs = _shapes.directions(self.monotonic_cst, shape.names, self._columns(shape))
        more = {"n_bins": n_bins, "task": task, "declared_pairs": declared, "signs": signs}
        plan = self._plan_of(AdditivePlan, shape, guarantee, **more)
        if plan.unpaired & set(sum(declared, ())):
            raise ValueError("interactions: a column of monotonic_cst is in no pair")
        if n_chosen is None:
            n_chosen = AUTO_PAIRS * plan.pays_for_pairs
        n_chosen = min(n_chosen, math.comb(shape.n_columns - len(plan.unpaired), 2))
        return replace(plan, n_chosen=n_chosen) if n_chosen else plan
