"""Evaluation of synthetic rows: against released tables, public test rows or private rows."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.utils.validation import check_is_fitted

from skdp._data._columns import read_columns
from skdp._data._frames import in_memory, is_frame, names_of
from skdp._data._tables import names_for_keys
from skdp.ledger import PrivacyAccountant
from skdp.metrics import dp_accuracy_score, dp_r2_score, dp_roc_auc_score
from skdp.stats._column_cells import Column, cell_reader
from skdp.synthesis._constraints import check_columns
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._types import TableLike
from skdp.utils._values import FrozenValue

# Number of bins of a numeric column when tables of rows are compared.
N_BINS = 16
# A value that occurs in at least this fraction of the test rows has a separate bin.
FREQUENT_FRACTION = 0.125


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticEvaluation(PrintedDocument, FrozenValue):
    """Result of `evaluate_synthetic`.

    Parameters
    ----------
    released_distance : float
        Mean total variation distance from the synthetic rows to the released tables. It costs no
        privacy budget. NaN if no table of several columns was released.
    noise_distance : float
        Distance between the released and the exact tables that is expected from the noise. NaN if
        no table of several columns was released.
    distances : dict of int to float
        Mean total variation distance to the public test rows, over all single columns (1) and all
        pairs (2). Empty without public test rows.
    score : float or None
        Score, on the test rows, of a model trained on synthetic rows; None without a target.
    metric : str
        Name of the score: "roc_auc", "accuracy" or "r2".
    is_private : bool
        True if the score is noisy because the test rows are private.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.synthesis import DPTableSynthesizer, evaluate_synthetic
    >>> frame = pd.DataFrame({"age": range(20, 80), "is_ill": [False, True] * 30})
    >>> synthesizer = DPTableSynthesizer(9.0, bounds={"age": (0, 99)}, target="is_ill").fit(frame)
    >>> sorted(evaluate_synthetic(synthesizer, frame).distances)
    [1, 2]
    """

    released_distance: float
    noise_distance: float
    distances: dict
    score: float | None
    metric: str
    is_private: bool

    def section(self):
        """Return the evaluation as a section of a document.

        Returns
        -------
        Section
        """
        rows = [("released tables", "none: no table of several columns was released")]
        if not np.isnan(self.released_distance):
            rows = [
                ("distance to released tables", f"{self.released_distance:.4f}"),
                ("distance expected from the noise", f"{self.noise_distance:.4f}"),
            ]
        for size, distance in self.distances.items():
            name = "pairs of columns"
            if size == 1:
                name = "single columns"
            rows.append((f"distance to test rows, {name}", f"{distance:.4f}"))
        if self.score is not None:
            noise = ""
            if self.is_private:
                noise = ", with noise for the test rows"
            rows.append((f"trained on synthetic rows, {self.metric}", f"{self.score:.4f}{noise}"))
        notes = (
            "Distances are mean total variation distances. Distances to test rows contain the "
            "sampling error of both tables.",
        )
        return Section("Evaluation of synthetic rows", tuple(rows), notes=notes)

    def __repr__(self):
        score = ""
        if self.score is not None:
            score = f", {self.metric}={self.score:.4f}"
        return f"SyntheticEvaluation(released_distance={self.released_distance:.4f}{score})"


def evaluate_synthetic(
    synthesizer: Any,
    X_test: TableLike | None = None,
    *,
    target: str | int | None = None,
    estimator: Any = None,
    n_samples: int | None = None,
    groups: ArrayLike | None = None,
    epsilon: float | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> SyntheticEvaluation:
    """Compare synthetic rows with released tables, and with test rows.

    Without test rows, or with public test rows, nothing is released. With `epsilon`, the test rows
    are private, and only a score is computed from them, by a private metric.

    Parameters
    ----------
    synthesizer : DPTableSynthesizer
        A fitted synthesizer.
    X_test : DataFrame or array of shape (n_rows, n_features), default=None
        Rows that were not in the fit, with the same columns. They are declared to be public unless
        `epsilon` is passed. None compares only with the released tables.
    target : str or int, default=None
        Column that a model is trained to predict; None is the synthesizer's target.
    estimator : estimator, default=None
        Classifier or regressor that is trained on synthetic rows, with categories as integers.
        None is scikit-learn's histogram-based gradient boosting.
    n_samples : int, default=None
        Number of synthetic rows; None is that of the fit.
    groups : array-like of shape (n_rows,), default=None
        Person id of each private test row, if the accountant's unit is a person.
    epsilon : float, default=None
        Epsilon of the score of private test rows. None declares that test rows are public.
    accountant : PrivacyAccountant, default=None
        Accountant that is charged for private test rows.
    random_state : int, default=None
        Seed of the synthetic rows and of the model. It also makes the noise of a private
        score reproducible.

    Returns
    -------
    SyntheticEvaluation

    Raises
    ------
    ValueError
        If test rows have other columns, if `epsilon` is passed without test rows or without a
        target, or if `groups` is passed without `epsilon`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.synthesis import DPTableSynthesizer, evaluate_synthetic
    >>> frame = pd.DataFrame({"age": range(20, 80), "is_ill": [False, True] * 30})
    >>> synthesizer = DPTableSynthesizer(9.0, bounds={"age": (0, 99)}, target="is_ill").fit(frame)
    >>> evaluate_synthetic(synthesizer, frame).metric
    'roc_auc'
    """
    check_is_fitted(synthesizer)
    report = synthesizer.report().rows
    tables = [row["distance"] for row in report]
    noise = [row["noise"] for row in report]
    distances = {}
    score = None
    metric = ""
    if target is None:
        target = synthesizer.target
    if isinstance(target, list | tuple):
        if len(target) == 1:
            target = target[0]
        else:
            target = None
    if epsilon is None and accountant is not None:
        raise ValueError(
            "accountant is for private test rows: pass epsilon as well, or leave accountant out if "
            "the test rows are public"
        )
    if epsilon is not None and (X_test is None or target is None):
        raise ValueError("epsilon is for private test rows: pass X_test and target as well")
    if groups is not None and epsilon is None:
        raise ValueError("groups is for private test rows: pass epsilon as well")
    if X_test is not None:
        _check_names(synthesizer, X_test)
        model = synthesizer.model_.model
        grids = [column.grid for column in model.columns]
        test = _read_rows(synthesizer, X_test, grids)
        synthetic = _read_rows(synthesizer, synthesizer.sample(n_samples, random_state), grids)
        if epsilon is None:
            distances = {
                size: _mean_distance(grids, synthetic, test, size)
                for size in (1, 2)
                if size <= len(grids)
            }
        if target is not None:
            (position,) = check_columns(
                target, names_for_keys(synthesizer), synthesizer.n_features_in_, "target"
            )
            modeled = [grid.index for grid in grids]
            if position not in modeled:
                raise ValueError("target names a column in same_as: name the one it is a copy of")
            trained = _train(grids, modeled.index(position), synthetic, estimator, random_state)
            metric, score = trained.score(test, groups, epsilon, accountant, random_state)
    return SyntheticEvaluation(
        released_distance=_mean_or_nan(tables),
        noise_distance=_mean_or_nan(noise),
        distances=distances,
        score=score,
        metric=metric,
        is_private=epsilon is not None,
    )


def _mean_or_nan(values):
    """Return the mean of values; NaN if there are none."""
    if not values:
        return np.nan
    return float(np.mean(values))


def _check_names(synthesizer, X):
    """Raise `ValueError` if a frame does not have the columns of the fit."""
    X = in_memory(X)
    names = synthesizer.model_.form.names
    if names is not None and is_frame(X) and names_of(X) != list(names):
        raise ValueError(
            f"X_test must have the columns of the fit, {list(names)}, got {names_of(X)}"
        )


def _read_rows(synthesizer, X, grids):
    """Return the values of rows in the modeled columns; each row is read independently.

    Returns
    -------
    list of ndarray of shape (n_rows,)
        Numbers, with NaN for missing values and days for dates and durations; or the cells of a
        categorical column.
    """
    table = read_columns(synthesizer, X, reset=False, allow_nan=True)
    read_labels = cell_reader([grid.term for grid in grids if grid.is_categorical], checks=True)
    rows = slice(0, table.shape[0])
    labels = iter(read_labels(table, rows))
    columns = []
    for grid in grids:
        if grid.is_categorical:
            columns.append(next(labels))
            continue
        column = Column(kind=grid.kind)
        values = column.check(
            table.whole_column(grid.index), table.name(grid.index), after_fit=True
        )
        columns.append(column.numbers(values))
    return columns


@dataclass(frozen=True, kw_only=True, eq=False)
class _TrainedModel(FrozenValue):
    """A model that was trained on synthetic rows.

    Parameters
    ----------
    model : estimator
    target : int
        Position of the target among the modeled columns.
    bounds : tuple of (float, float)
        Range of the target in the synthetic rows, for regression.
    """

    model: Any
    target: int
    bounds: tuple

    def score(self, test, groups, epsilon, accountant, random_state):
        """Return the name and the value of the score on test rows."""
        y = test[self.target]
        features = _features(test, self.target)
        if not is_classifier(self.model):
            predicted = self.model.predict(features)
            if epsilon is None:
                return "r2", float(r2_score(y, predicted))
            score = dp_r2_score(
                y,
                predicted,
                target_bounds=self.bounds,
                groups=groups,
                epsilon=epsilon,
                accountant=accountant,
                random_state=random_state,
            )
            return "r2", float(score)
        classes = self.model.classes_
        if len(classes) == 2:
            probabilities = self.model.predict_proba(features)[:, 1]
            is_positive = (y == classes[1]).astype(int)
            if epsilon is None:
                return "roc_auc", float(roc_auc_score(is_positive, probabilities))
            score = dp_roc_auc_score(
                is_positive,
                probabilities,
                classes=[0, 1],
                groups=groups,
                epsilon=epsilon,
                accountant=accountant,
                random_state=random_state,
            )
            return "roc_auc", float(score)
        predicted = self.model.predict(features)
        if epsilon is None:
            return "accuracy", float(accuracy_score(y, predicted))
        is_right = (y == predicted).astype(int)
        ones = np.ones(len(y), dtype=int)
        # The classes are passed, so no error reveals that a model is always right.
        score = dp_accuracy_score(
            is_right,
            ones,
            classes=[0, 1],
            groups=groups,
            epsilon=epsilon,
            accountant=accountant,
            random_state=random_state,
        )
        return "accuracy", float(score)


def _train(grids, target, synthetic, estimator, random_state):
    """Return a `_TrainedModel` that predicts one column of synthetic rows from the others."""
    grid = grids[target]
    y = synthetic[target]
    if grid.is_categorical:
        is_present = y < grid.n_cells - 1
        is_regression = False
        if estimator is not None and not is_classifier(estimator):
            raise ValueError("estimator must be a classifier, because the target is categorical")
    else:
        is_present = ~np.isnan(y)
        if estimator is None:
            is_regression = len(np.unique(y[is_present])) > 2
        else:
            is_regression = not is_classifier(estimator)
    if estimator is None:
        kind = HistGradientBoostingClassifier
        if is_regression:
            kind = HistGradientBoostingRegressor
        estimator = kind(random_state=random_state)
    y = y[is_present]
    model = clone(estimator).fit(_features(synthetic, target)[is_present], y)
    bounds = (0.0, 1.0)
    if is_regression:
        low, high = float(y.min()), float(y.max())
        # The bounds for a score must differ, even if all synthetic targets are equal.
        bounds = (low, high if low < high else low + 1.0)
    return _TrainedModel(model=model, target=target, bounds=bounds)


def _features(columns, target):
    """Return all columns but the target as a matrix of doubles, with categories as cells."""
    features = [values for j, values in enumerate(columns) if j != target]
    n_rows = len(columns[target])
    return np.column_stack([np.empty((n_rows, 0)), *features]).astype(np.float64)


def _mean_distance(grids, synthetic, test, n_columns):
    """Return the mean total variation distance of all tables of this number of columns."""
    codes = [_codes(*columns) for columns in zip(grids, synthetic, test, strict=True)]
    distances = []
    for subset in combinations(codes, n_columns):
        sizes = tuple(int(max(a.max(), b.max())) + 1 for a, b in subset)
        fractions = []
        for table in range(2):
            joint = np.ravel_multi_index(tuple(pair[table] for pair in subset), sizes)
            fractions.append(np.bincount(joint, minlength=int(np.prod(sizes))) / len(joint))
        distances.append(0.5 * np.abs(fractions[0] - fractions[1]).sum())
    return float(np.mean(distances))


def _codes(grid, synthetic, test):
    """Return the values of a column as integers, so that tables of counts can be compared.

    Parameters
    ----------
    grid : CategoryCells or NumericCells
        Domain of the column.
    synthetic, test : ndarray of shape (n_rows,)
        The column in the synthetic table and in the table of real rows, as cells if it is
        categorical, else as numbers.

    Returns
    -------
    sequence of two ndarray of int
        Cells of a categorical column, or bins with about equal counts of real rows; 0 is the bin of
        NaN.
    """
    if grid.is_categorical:
        return synthetic, test
    edges = _bin_edges(test)
    codes = []
    for values in (synthetic, test):
        bins = np.searchsorted(edges, values, side="right") + 1
        codes.append(np.where(np.isnan(values), 0, bins))
    return codes


def _bin_edges(values):
    """Return edges between bins of about equal counts; a frequent value has a separate bin."""
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if not len(distinct):
        return np.empty(0)
    is_frequent = counts > FREQUENT_FRACTION * counts.sum()
    rest = np.repeat(distinct[~is_frequent], counts[~is_frequent])
    # `last` marks the distinct values after which a bin ends: frequent values, quantiles of the
    # rest, and the values before frequent ones.
    last = is_frequent.copy()
    if len(rest):
        quantiles = np.quantile(rest, np.arange(1, N_BINS) / N_BINS, method="lower")
        last |= np.isin(distinct, quantiles)
    last[:-1] |= is_frequent[1:]
    inner = ((distinct[:-1] + distinct[1:]) / 2.0)[last[:-1]]
    # Values outside the range of the test rows fall into additional bins without test rows.
    return np.concatenate([distinct[:1], inner, np.nextafter(distinct[-1:], np.inf)])
