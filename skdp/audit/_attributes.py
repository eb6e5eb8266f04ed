"""Attribute inference: which value of a column did a row have that an estimator was fitted to?"""

from dataclasses import asdict, dataclass

import numpy as np
from scipy.special import stdtrit
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import column_or_1d

from skdp.audit._outputs import LEAST_PROBABILITY, halves, of_shadows, per_row_statistic
from skdp.audit._scores import Interval, mean_of
from skdp.audit._tables import as_table, column_of, coordinates, with_constant
from skdp.utils._documents import PrintedDocument
from skdp.utils._frames import take_rows
from skdp.utils._validation import check_choice, check_integer

MOST_VALUES = 50


@dataclass(frozen=True)
class AttributeInference(PrintedDocument):
    """How often an attacker tells a row's value of a column, with a model of the row and without.

    Printing gives text, a notebook shows HTML, `to_dict` gives JSON values.

    Parameters
    ----------
    column : object
        Which one was attacked.
    n_values : int
        How many values it has.
    baseline : float
        The share of rows whose value is told rightly from the row's other columns and its label,
        by a classifier that was fitted to other rows: no model is needed for that.
    without_row, with_row : Interval
        The share that an attacker tells rightly who has a model that was fitted to other rows, and
        who has one that was fitted to the row, too.
    gain : Interval
        The second less the first, in pairs: what is learnt about a row because it was in the
        table. The rest is what the model says about everybody like it.
    n_models, confidence : int, float
        How many models were attacked, and the confidence of each interval.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp.audit import attribute_inference
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 2, size=(60, 3)), rng.integers(0, 2, 60)
    >>> options = {"baseline": LogisticRegression(), "n_models": 6}
    >>> found = attribute_inference(LogisticRegression(), X, y, column=2, **options)
    >>> found.n_values, found.gain.low < 0.3
    (2, True)
    """

    column: object
    n_values: int
    baseline: float
    without_row: Interval
    with_row: Interval
    gain: Interval
    n_models: int
    confidence: float

    note = (
        "Only the gain is about privacy: it is what taking part reveals. A claim bounds it, see "
        "success_bound. These figures were computed without privacy."
    )

    def to_dict(self):
        """Return the figures as JSON values.

        Returns
        -------
        dict
        """
        return asdict(self) | {"column": str(self.column), "note": self.note}

    def __str__(self):
        lines = [
            f"Attribute inference, column {self.column!s}, {self.n_values} values",
            f"  told rightly without a model   {self.baseline:.4g}",
            f"  with a model of other rows     {self.without_row}",
            f"  with a model of the row, too   {self.with_row}",
            f"  gain from the row in the table  {self.gain}",
            f"  {self.n_models} models, each interval at {self.confidence:.0%} confidence",
            f"  {self.note}",
        ]
        return "\n".join(lines)


def attribute_inference(
    estimator,
    X,
    y,
    *,
    column,
    baseline=None,
    access="probabilities",
    n_models=32,
    confidence=0.95,
    n_jobs=None,
    random_state=None,
    verbose=None,
):
    """Attack a column: tell its value in a row from the other columns, the label and a model.

    Half of the rows are drawn, a model is fitted to them and another one to the others, and so on.
    Every row is then attacked with a model that was fitted to it and with one that was not. The
    attacker has a guess from the other columns, asks the model about the row with each value in
    turn, and compares its answers with those of models that were fitted without the row.

    Parameters
    ----------
    estimator : estimator
        Private or not. Its clones charge no accountant.
    X : array-like of shape (n_samples, n_features)
        Rows, an array or a frame.
    y : array-like of shape (n_samples,)
        Labels or targets, which the attacker knows.
    column : int or str
        Position or name of the column that the attacker does not know, of at most 50 values.
    baseline : classifier, default=None
        With `predict_proba`; makes the attacker's guess from the other columns as numbers and the
        label. None takes `HistGradientBoostingClassifier`. It is fitted to other rows than it
        judges, by cross-validation in five parts.
    access : {"probabilities", "labels", "parameters"}, default="probabilities"
        What the attacker sees of the model, as in `membership_inference`.
    n_models : int, default=32
        How many are fitted, in pairs; an even number from 6 on.
    confidence : float, default=0.95
        Of each interval: Student's, over the pairs of models, for these rows.
    n_jobs : int, default=None
        How many models are fitted at a time, as in joblib.
    random_state : int or None, default=None
        Of the halves.
    verbose : int, default=None
        As in `membership_inference`.

    Returns
    -------
    AttributeInference

    Raises
    ------
    ValueError
        If an option is not as described, or the column has one value or more than 50.

    Notes
    -----
    All halves have one size, so that a row which takes part does so in the place of another. A
    claim of (epsilon, delta) for a replaced row therefore bounds the mean of `with_row`, whatever
    the attack, by ``success_bound(without_row, epsilon, delta)``; a claim for a removed row is one
    of (2 epsilon, (1 + e^epsilon) delta) for a replaced one. ``docs/auditing.md`` has the proof.

    References
    ----------
    S. Yeom, I. Giacomelli, M. Fredrikson, S. Jha, "Privacy Risk in Machine Learning: Analyzing
    the Connection to Overfitting", 2018; B. Jayaraman, D. Evans, "Are Attribute Inference Attacks
    Just Imputation?", 2022; A. Salem et al., "SoK: Let the Privacy Games Begin!", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp.audit import attribute_inference
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.integers(0, 2, size=(300, 12)), rng.integers(0, 2, 300)
    >>> found = attribute_inference(
    ...     DecisionTreeClassifier(), X, y, column=0, n_models=8, random_state=0
    ... )
    >>> found.gain.low > 0.0
    True
    """
    check_choice(access, "access", ("probabilities", "labels", "parameters"))
    if check_integer(n_models, "n_models", 6) % 2:
        raise ValueError(f"n_models must be even, got {n_models}")
    X, y = indexable(X, column_or_1d(y))
    table, random = as_table(X), check_random_state(random_state)
    place = list(table.columns).index(column) if isinstance(column, str) else column
    secret = np.asarray(column_of(table, place))
    values, first, codes = np.unique(secret, return_index=True, return_inverse=True)
    if not 2 <= len(values) <= MOST_VALUES:
        raise ValueError(f"the column must have 2 to {MOST_VALUES} values, it has {len(values)}")
    label = np.unique(y, return_inverse=True)[1] if is_classifier(estimator) else y
    known = np.column_stack([np.delete(coordinates(table), place, axis=1), label])
    imputer = HistGradientBoostingClassifier() if baseline is None else clone(baseline)
    guess = cross_val_predict(imputer, known, codes, cv=5, method="predict_proba").T
    guess = np.log(np.maximum(guess, LEAST_PROBABILITY))

    fitted = halves(len(y), n_models, random)
    options = [with_constant(table, place, row) for row in first]

    def told(model, mask):
        model.fit(take_rows(X, mask), take_rows(y, mask))
        return [per_row_statistic(model, each, y, access) for each in options]

    what = "attribute_inference: {} of {} models"
    terms = {"n_jobs": n_jobs, "verbose": verbose, "what": what}
    seen = of_shadows(told, estimator, fitted, random, **terms)
    right = []
    for pair in range(n_models // 2):
        own = np.arange(n_models) // 2 == pair
        # What a model says of a row, less what models say that were fitted without it.
        others, theirs = seen[~own], fitted[~own]
        excess = seen - mean_of(others, ~theirs[:, None])
        weights = _weights(guess, excess[~own], theirs, codes)
        scores = weights[0] * guess + weights[1] * excess[own]
        hits = np.argmax(scores, axis=1) == codes
        right.append([np.mean(hits[~fitted[own]]), np.mean(hits[fitted[own]])])
    without, inside = np.transpose(right)
    return AttributeInference(
        column=column,
        n_values=len(values),
        baseline=float(np.mean(np.argmax(guess, axis=0) == codes)),
        without_row=_student(without, confidence),
        with_row=_student(inside, confidence),
        gain=_student(inside - without, confidence),
        n_models=n_models,
        confidence=confidence,
    )


def _weights(guess, excess, fitted, codes):
    """Return how much a guess and a model's excess count, learnt on models of the attacker's own.

    By a logistic regression of which value is the right one, for rows that a model was fitted to.
    """
    model, row = np.nonzero(fitted)
    features = [guess[:, row].T, excess.transpose(0, 2, 1)[model, row]]
    centred = [(each - each.mean(axis=1, keepdims=True)).ravel() for each in features]
    right = codes[row, None] == np.arange(len(guess))
    return LogisticRegression().fit(np.column_stack(centred), right.ravel()).coef_[0]


def _student(values, confidence):
    mean, n = float(np.mean(values)), len(values)
    half = stdtrit(n - 1, (1.0 + confidence) / 2.0) * np.std(values, ddof=1) / np.sqrt(n)
    return Interval(mean, float(mean - half), float(mean + half))
