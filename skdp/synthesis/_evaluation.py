"""Evaluation of synthetic rows: against released tables, public test rows or private rows."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils.validation import check_is_fitted

from skdp.ledger import PrivacyAccountant
from skdp.metrics import dp_accuracy_score, dp_r2_score, dp_roc_auc_score
from skdp.synthesis._constraints import check_columns
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._types import TableLike
from skdp.utils._values import FrozenValue

# Number of bins of a numeric column when tables of rows are compared.
N_BINS = 16
# A value with at least this fraction of the test rows is a bin.
FREQUENT_FRACTION = 0.125


@dataclass(frozen=True, kw_only=True, eq=False)
class SyntheticEvaluation(PrintedDocument, FrozenValue):
    """Result of `evaluate_synthetic`.

    Parameters
    ----------
    released_distance : float
        Mean total variation distance from the synthetic rows to the released tables. It is free.
    noise_distance : float
        The same distance between the released and the exact tables, expected from the noise.
    distances : dict of int to float
        Mean total variation distance to the public test rows, over all single columns (1) and all
        pairs (2). Empty without public test rows.
    score : float or None
        Score on the test rows of a model that was trained on synthetic rows; None without target.
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
        rows = [
            ("distance to released tables", f"{self.released_distance:.4f}"),
            ("of it expected from the noise", f"{self.noise_distance:.4f}"),
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
        Rows that were not in the fit, with the columns of the fit, and which are declared to be
        public unless `epsilon` is passed. None compares only with the released tables.
    target : str or int, default=None
        Column that a model is trained to predict; None is the synthesizer's target.
    estimator : estimator, default=None
        Classifier or regressor that is trained on synthetic rows. None is scikit-learn's
        histogram-based gradient boosting.
    n_samples : int, default=None
        Number of synthetic rows; None is that of the fit.
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
        If test rows have other columns, or `epsilon` is passed without test rows and target.

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
    names = synthesizer.model_.form.names
    if target is None:
        target = synthesizer.target
    if isinstance(target, list | tuple):
        if len(target) == 1:
            target = target[0]
        else:
            target = None
    if epsilon is not None and (X_test is None or target is None):
        raise ValueError("epsilon is for private test rows: pass X_test and target as well")
    if X_test is not None:
        synthetic = _as_pandas(synthesizer.sample(n_samples, random_state), names)
        test = _as_pandas(X_test, names)
        if list(test.columns) != list(synthetic.columns):
            raise ValueError(
                f"X_test must have the columns of the fit, {list(synthetic.columns)}, got "
                f"{list(test.columns)}"
            )
        if epsilon is None:
            distances = {size: _mean_distance(synthetic, test, size) for size in (1, 2)}
        if target is not None:
            (position,) = check_columns(target, names, synthetic.shape[1], "target")
            trained = _train(synthetic, position, estimator, random_state)
            metric, score = trained.score(test, epsilon, accountant, random_state)
    return SyntheticEvaluation(
        released_distance=float(np.mean(tables)) if tables else 0.0,
        noise_distance=float(np.mean(noise)) if noise else 0.0,
        distances=distances,
        score=score,
        metric=metric,
        is_private=epsilon is not None,
    )


def _as_pandas(table, names):
    """Return a table as a pandas frame."""
    import pandas as pd

    if hasattr(table, "to_pandas"):
        return table.to_pandas()
    if isinstance(table, pd.DataFrame):
        return table
    return pd.DataFrame(table, columns=names)


@dataclass(frozen=True, kw_only=True, eq=False)
class _TrainedModel(FrozenValue):
    """A model that was trained on synthetic rows.

    Parameters
    ----------
    model : estimator
    target : hashable
        Name of the target.
    bounds : tuple of (float, float)
        Range of the target in the synthetic rows, for regression.
    """

    model: Any
    target: Any
    bounds: tuple

    def score(self, test, epsilon, accountant, random_state):
        """Return the name and the value of the score on test rows."""
        features = _features(test.drop(columns=[self.target]))
        if not is_classifier(self.model):
            y = test[self.target].to_numpy(dtype=float)
            predicted = self.model.predict(features)
            if epsilon is None:
                return "r2", float(r2_score(y, predicted))
            options = _private_options(epsilon, accountant, random_state)
            return "r2", float(dp_r2_score(y, predicted, target_bounds=self.bounds, **options))
        y = test[self.target].astype(str).to_numpy()
        classes = self.model.classes_
        options = _private_options(epsilon, accountant, random_state)
        if len(classes) == 2:
            probabilities = self.model.predict_proba(features)[:, 1]
            if epsilon is None:
                return "roc_auc", float(roc_auc_score(y == classes[1], probabilities))
            is_positive = (y == classes[1]).astype(int)
            return "roc_auc", float(dp_roc_auc_score(is_positive, probabilities, **options))
        predicted = self.model.predict(features)
        if epsilon is None:
            return "accuracy", float(accuracy_score(y, predicted))
        is_right = (y == predicted).astype(int)
        return "accuracy", float(dp_accuracy_score(is_right, np.ones(len(y), dtype=int), **options))


def _private_options(epsilon, accountant, random_state):
    return {"epsilon": epsilon, "accountant": accountant, "random_state": random_state}


def _train(synthetic, position, estimator, random_state):
    """Return a `_TrainedModel` that predicts one column of synthetic rows from the others."""
    import pandas as pd

    target = synthetic.columns[position]
    y = synthetic[target]
    is_regression = pd.api.types.is_numeric_dtype(y) and not pd.api.types.is_bool_dtype(y)
    is_regression = is_regression and (estimator is None or not is_classifier(estimator))
    is_regression = is_regression and y.nunique() > 2
    features = _features(synthetic.drop(columns=[target]))
    labels = [j for j, dtype in enumerate(features.dtypes) if dtype.kind == "O"]
    if estimator is None:
        kind = HistGradientBoostingClassifier
        if is_regression:
            kind = HistGradientBoostingRegressor
        estimator = kind(random_state=random_state)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    columns = make_column_transformer((encoder, labels), remainder="passthrough")
    model = make_pipeline(columns, clone(estimator))
    is_present = y.notna().to_numpy()
    if is_regression:
        y = y[is_present].astype(float)
    else:
        y = y[is_present].astype(str)
    model.fit(features[is_present], y.to_numpy())
    bounds = (0.0, 1.0)
    if is_regression:
        bounds = (float(y.min()), float(y.max()))
    return _TrainedModel(model=model, target=target, bounds=bounds)


def _features(frame):
    """Return numbers as doubles, dates and durations in days, and labels as objects."""
    import pandas as pd

    columns = {}
    for position, name in enumerate(frame.columns):
        values = frame[name]
        if pd.api.types.is_datetime64_any_dtype(values):
            columns[position] = values.astype("datetime64[us]").astype("int64") / 86_400e6
        elif pd.api.types.is_timedelta64_dtype(values):
            columns[position] = values.dt.total_seconds() / 86_400.0
        elif pd.api.types.is_numeric_dtype(values):
            columns[position] = values.astype("Float64").to_numpy(dtype=float, na_value=np.nan)
        else:
            labels = [_label(value) for value in values]
            columns[position] = pd.Series(labels, index=frame.index, dtype=object)
    return pd.DataFrame(columns, index=frame.index)


def _label(value):
    """Return the text of a label; missing values are one label."""
    if value is None or value != value:
        return "missing"
    return str(value)


def _mean_distance(synthetic, test, n_columns):
    """Return the mean total variation distance of all tables of this number of columns."""
    codes = [_codes(synthetic[name], test[name]) for name in synthetic.columns]
    distances = []
    for subset in combinations(codes, n_columns):
        sizes = tuple(int(max(a.max(), b.max())) + 1 for a, b in subset)
        fractions = []
        for table in range(2):
            joint = np.ravel_multi_index(tuple(pair[table] for pair in subset), sizes)
            fractions.append(np.bincount(joint, minlength=int(np.prod(sizes))) / len(joint))
        distances.append(0.5 * np.abs(fractions[0] - fractions[1]).sum())
    return float(np.mean(distances))


def _codes(synthetic, test):
    """Return the bins or labels of a column of both tables, as integers."""
    columns = [_features(values.to_frame())[0].to_numpy() for values in (synthetic, test)]
    if columns[0].dtype == object:
        labels = {label: i for i, label in enumerate(sorted({*columns[0], *columns[1]}))}
        return [np.array([labels[label] for label in values]) for values in columns]
    edges = _bin_edges(columns[1])
    codes = []
    for values in columns:
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
    last = is_frequent.copy()
    if len(rest):
        quantiles = np.quantile(rest, np.arange(1, N_BINS) / N_BINS, method="lower")
        last |= np.isin(distinct, quantiles)
    last[:-1] |= is_frequent[1:]
    inner = ((distinct[:-1] + distinct[1:]) / 2.0)[last[:-1]]
    # Values outside the range of the test rows are in additional bins without test rows.
    return np.concatenate([distinct[:1], inner, np.nextafter(distinct[-1:], np.inf)])
