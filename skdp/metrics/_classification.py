"""Private metrics of classifiers, with the names and meanings of scikit-learn's."""

from __future__ import annotations

from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from skdp._data._dask import in_one_run
from skdp._data._row_wise import row_sums
from skdp.ledger import PrivacyAccountant
from skdp.metrics._counts import confusion_value
from skdp.metrics._grid import check_score_bounds
from skdp.metrics._read import (
    check_two_classes,
    read_codes,
    read_predicted_codes,
    read_probabilities,
    read_scores,
)
from skdp.metrics._releases import (
    BinaryCounts,
    LossSums,
    MatrixCounts,
    pairs_of_codes,
    release_metric,
)
from skdp.metrics._values import NoisyConfusionMatrix, NoisyCurve, NoisyScore
from skdp.utils._validation import check_choice, check_integer, check_positive


def _release_cells(
    name,
    y_true,
    y_score,
    *,
    classes,
    score_bounds,
    n_bins=8,
    epsilon,
    delta,
    groups,
    accountant,
    random_state,
):
    """Release the counts by class and score, and return the `BinaryCells`."""
    score_bounds = check_score_bounds(score_bounds)
    classes, codes = read_codes(y_true, classes)
    check_two_classes(classes, name)
    scores = read_scores(y_score, "y_score", len(codes))

    def make_statistics(n_units, guarantee):
        """Return the statistics whose counts are released, as `release_metric` requires."""
        return BinaryCounts.on_grid(n_units, guarantee, classes, score_bounds, n_bins=n_bins)

    return release_metric(
        name,
        len(codes),
        make_statistics,
        (codes, scores),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


def _release_matrix(
    name,
    y_true,
    y_pred,
    pairs,
    make_shape,
    *,
    classes,
    epsilon,
    delta,
    groups,
    accountant,
    random_state,
):
    """Release a matrix of counts of pairs, and return the `ReleasedMatrix` and the classes."""
    classes, codes = read_codes(y_true, classes)
    predicted = read_predicted_codes(y_pred, classes, len(codes))
    make_statistics = partial(MatrixCounts.of_shape, make_shape(len(classes)), pairs=pairs)
    released = release_metric(
        name,
        len(codes),
        make_statistics,
        (codes, predicted),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return released, classes


def _hits(codes, predicted):
    return np.zeros(len(codes), dtype=np.int64), codes == predicted


def _hits_by_class(codes, predicted):
    return codes, codes == predicted


def _one_by_two(n_classes):
    return 1, 2


def _classes_by_two(n_classes):
    return n_classes, 2


def _square(n_classes):
    return n_classes, n_classes


def _log_losses(codes, probabilities):
    """Return each row's log loss: minus the log of its class's probability."""
    return -np.log(probabilities[np.arange(len(codes)), codes])


def _squared_distances(codes, probabilities):
    """Return each row's Brier loss; with two classes, that of the second class alone."""
    if probabilities.shape[1] == 2:
        return np.square(probabilities[:, 1] - codes)
    labels = codes[:, np.newaxis] == np.arange(probabilities.shape[1])
    return row_sums(np.square(probabilities - labels))


def _hit_rate(counts):
    """Return the fraction of hits among all rows; `counts` are misses and hits."""
    return counts[..., 0, 1] / np.maximum(counts.sum(axis=(-2, -1)), 1e-300)


def _mean_hit_rate(counts):
    """Return the mean over classes of the fraction of hits; 0 for a class without rows."""
    totals = counts.sum(axis=-1)
    is_known = totals > 0.0
    return np.where(is_known, counts[..., 1] / np.where(is_known, totals, 1.0), 0.0).mean(axis=-1)


@in_one_run
def dp_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the fraction of correct predictions with differential privacy.

    The counts of right and wrong predictions are released. One row changes one of them, and their
    sum is public.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_pred : array-like of shape (n_samples,)
        Predicted labels. Each must be computed from its row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_accuracy_score
    >>> y = np.arange(10_000) % 2
    >>> predicted = np.where(np.arange(10_000) % 10 == 0, 1 - y, y)
    >>> bool(abs(dp_accuracy_score(y, predicted, epsilon=1.0) - 0.9) < 0.01)
    True
    """
    matrix, classes = _release_matrix(
        "dp_accuracy_score",
        y_true,
        y_pred,
        _hits,
        _one_by_two,
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return matrix.score("accuracy", _hit_rate)


@in_one_run
def dp_balanced_accuracy_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the mean of the classes' recalls with differential privacy.

    Right and wrong predictions are counted by class. Each row is in one of these counts, which also
    determine the sizes of the classes.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_pred : array-like of shape (n_samples,)
        Predicted labels. Each must be computed from its row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_balanced_accuracy_score
    >>> y = np.arange(10_000) % 2
    >>> predicted = np.where(np.arange(10_000) % 10 == 0, 1 - y, y)
    >>> bool(abs(dp_balanced_accuracy_score(y, predicted, epsilon=1.0) - 0.9) < 0.01)
    True
    """
    matrix, classes = _release_matrix(
        "dp_balanced_accuracy_score",
        y_true,
        y_pred,
        _hits_by_class,
        _classes_by_two,
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return matrix.score("balanced_accuracy", _mean_hit_rate)


@in_one_run
def dp_confusion_matrix(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyConfusionMatrix:
    """Return a confusion matrix with differential privacy.

    One row is in one cell.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_pred : array-like of shape (n_samples,)
        Predicted labels. Each must be computed from its row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyConfusionMatrix
        ``numpy.asarray`` returns the counts, with a row per true label and a column per predicted
        label.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_confusion_matrix
    >>> y = np.arange(10_000) % 2
    >>> predicted = np.where(np.arange(10_000) % 10 == 0, 1 - y, y)
    >>> matrix = np.asarray(dp_confusion_matrix(y, predicted, epsilon=1.0))
    >>> bool(np.abs(matrix - [[4000, 1000], [0, 5000]]).max() < 50)
    True
    """
    matrix, classes = _release_matrix(
        "dp_confusion_matrix",
        y_true,
        y_pred,
        pairs_of_codes,
        _square,
        classes=classes,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return confusion_value(matrix, classes)


@in_one_run
def dp_roc_auc_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    score_bounds: tuple[float, float] | None = (0.0, 1.0),
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the area under the ROC curve with differential privacy.

    The counts of rows by class and score are released on a public grid, whose number of cells
    depends on the number of rows and epsilon. Each row is in one cell. Within a cell, the densities
    of both classes are assumed to be linear. For rows in any order, the area differs from that with
    ties in each cell by at most half of the sum, over the cells, of the product of both classes'
    fractions in the cell.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_score : array-like of shape (n_samples,) or (n_samples, 2)
        Score of the positive class, or probabilities of both. Each must be computed from its row
        alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public. The second of the sorted labels is the positive class.
    score_bounds : tuple of (low, high) or None, default=(0, 1)
        Public range of the scores, which corresponds to probabilities from 0 to 1; other scores are
        clipped. None is for scores without a public range, such as decision values, and applies the
        logistic function to them.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_roc_auc_score
    >>> scores = np.linspace(0.0, 1.0, 10_000)
    >>> y = (scores + np.arange(10_000) % 7 / 7 > 1.0).astype(int)
    >>> score = dp_roc_auc_score(y, scores, epsilon=1.0)
    >>> bool(score.noise_std < 0.01)
    True
    """
    cells = _release_cells(
        "dp_roc_auc_score",
        y_true,
        y_score,
        classes=classes,
        score_bounds=score_bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return cells.roc_auc()


@in_one_run
def dp_average_precision_score(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    score_bounds: tuple[float, float] | None = (0.0, 1.0),
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the average precision with differential privacy.

    The counts of rows by class and score are released on a public grid, whose number of cells
    depends on the number of rows and epsilon. Each row is in one cell. Rows of both classes in one
    cell are assumed to be evenly mixed. The intervals hold for every order of the rows in a cell.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_score : array-like of shape (n_samples,) or (n_samples, 2)
        Score of the positive class, or probabilities of both. Each must be computed from its row
        alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public. The second of the sorted labels is the positive class.
    score_bounds : tuple of (low, high) or None, default=(0, 1)
        Public range of the scores, which corresponds to probabilities from 0 to 1; other scores are
        clipped. None is for scores without a public range, such as decision values, and applies the
        logistic function to them.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_average_precision_score
    >>> scores = np.linspace(0.0, 1.0, 10_000)
    >>> y = (scores + np.arange(10_000) % 7 / 7 > 1.0).astype(int)
    >>> score = dp_average_precision_score(y, scores, epsilon=1.0)
    >>> bool(0.5 < score <= 1.0)
    True
    """
    cells = _release_cells(
        "dp_average_precision_score",
        y_true,
        y_score,
        classes=classes,
        score_bounds=score_bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return cells.average_precision()


@in_one_run
def dp_roc_curve(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    score_bounds: tuple[float, float] | None = (0.0, 1.0),
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyCurve:
    """Return a ROC curve with differential privacy.

    The counts of rows by class and score are released on a public grid, whose number of cells
    depends on the number of rows and epsilon. Each row is in one cell. The curve has a point at
    each edge of the grid, and both rates are monotonic.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_score : array-like of shape (n_samples,) or (n_samples, 2)
        Score of the positive class, or probabilities of both. Each must be computed from its row
        alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public. The second of the sorted labels is the positive class.
    score_bounds : tuple of (low, high) or None, default=(0, 1)
        Public range of the scores, which corresponds to probabilities from 0 to 1; other scores are
        clipped. None is for scores without a public range, such as decision values, and applies the
        logistic function to them.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyCurve
        Can be unpacked as ``fpr, tpr, thresholds``.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_roc_curve
    >>> scores = np.linspace(0.0, 1.0, 10_000)
    >>> y = (scores + np.arange(10_000) % 7 / 7 > 1.0).astype(int)
    >>> fpr, tpr, thresholds = dp_roc_curve(y, scores, epsilon=1.0)
    >>> len(fpr) == len(tpr) == len(thresholds)
    True
    """
    cells = _release_cells(
        "dp_roc_curve",
        y_true,
        y_score,
        classes=classes,
        score_bounds=score_bounds,
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return cells.roc_curve()


@in_one_run
def dp_calibration_curve(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    n_bins: int = 5,
    strategy: Literal["uniform", "quantile"] = "uniform",
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyCurve:
    """Return a calibration curve with differential privacy.

    The counts of rows by class and score are released on a public grid, whose number of cells
    depends on the number of rows and epsilon. Each row is in one cell. The edges of the bins are
    edges of the grid.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_prob : array-like of shape (n_samples,) or (n_samples, 2)
        Probability of the positive class, or probabilities of both. Each must be computed from its
        row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public. The second of the sorted labels is the positive class.
    n_bins : int, default=5
        Number of bins.
    strategy : {"uniform", "quantile"}, default="uniform"
        "uniform" uses bins of equal width. "quantile" merges cells until, by the released counts, a
        bin has a fraction of 1 / n_bins of the rows, and more rows than noise. It gives at most
        `n_bins` bins and suits rare classes, for which almost all rows have small probabilities.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyCurve
        Can be unpacked as ``prob_true, prob_pred``. Its `bin_edges` are the edges of the bins. A
        bin that may be empty has the interval [0, 1].

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_calibration_curve
    >>> scores = np.linspace(0.0, 1.0, 10_000)
    >>> y = (scores + np.arange(10_000) % 7 / 7 > 1.0).astype(int)
    >>> prob_true, prob_pred = dp_calibration_curve(y, scores, epsilon=1.0)
    >>> prob_true.shape
    (5,)
    """
    strategy = check_choice(strategy, "strategy", ("uniform", "quantile"))
    cells = _release_cells(
        "dp_calibration_curve",
        y_true,
        y_prob,
        classes=classes,
        score_bounds=(0.0, 1.0),
        n_bins=check_integer(n_bins, "n_bins", 1, 100),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
    return cells.calibration_curve(int(n_bins), strategy)


@in_one_run
def dp_log_loss(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    bound: float = 5.0,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the mean log loss with differential privacy.

    The sum over rows of ``min(-log p, bound)`` is released, where p is the probability of the row's
    label. This means that probabilities of labels below ``exp(-bound)`` are raised to it.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the sorted classes, or of the second of two classes. A row's probabilities
        must be computed from that row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    bound : float, default=5.0
        Largest loss of a row, in nats; public. The noise is proportional to it.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_log_loss
    >>> scores = np.linspace(0.0, 1.0, 10_000)
    >>> y = (scores + np.arange(10_000) % 7 / 7 > 1.0).astype(int)
    >>> score = dp_log_loss(y, scores, epsilon=1.0)
    >>> bool(score.noise_std < 0.01)
    True
    """
    bound = check_positive(bound, "bound")
    labels, codes = read_codes(y_true, classes)
    probabilities = read_probabilities(y_prob, "y_prob", len(codes), len(labels))

    def make_statistics(n_units, guarantee):
        """Return the statistics whose sums are released, as `release_metric` requires."""
        return LossSums(
            n_units=n_units,
            guarantee=guarantee,
            name_of_metric="log_loss",
            loss=_log_losses,
            bound=bound,
        )

    return release_metric(
        "dp_log_loss",
        len(codes),
        make_statistics,
        (codes, probabilities),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )


@in_one_run
def dp_brier_score(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    classes: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> NoisyScore:
    """Return the Brier score with differential privacy.

    The sum over rows of the squared distance between the probabilities and the label is released.
    As in scikit-learn's `brier_score_loss`, the distance covers only the positive class if there
    are two classes. If there are more, it covers all classes and is at most 2.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. The number of labels is public.
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the sorted classes, or of the second of two classes. A row's probabilities
        must be computed from that row alone.
    epsilon : float, default=1.0
        Epsilon of the release, positive.
    delta : float, default=0.0
        Delta of the release, in [0, 1). With a positive delta, Gaussian noise is used if its
        expected error is smaller.
    classes : array-like, default=None
        All labels that can occur; public. None uses the labels of `y_true`, which are then assumed
        to be public.
    groups : array-like of shape (n_samples,), default=None
        Person id of each row. The privacy unit is then the person, regardless of the number of
        rows, and each row has weight 1 / (number of rows of that person); see
        ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.

    Returns
    -------
    NoisyScore
        A float with its intervals.

    Raises
    ------
    ValueError
        If a parameter or the data are invalid; nothing was charged.
    BudgetExceededError
        If the accountant refuses the charge; nothing was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import dp_brier_score
    >>> scores = np.linspace(0.0, 1.0, 10_000)
    >>> y = (scores + np.arange(10_000) % 7 / 7 > 1.0).astype(int)
    >>> score = dp_brier_score(y, scores, epsilon=1.0)
    >>> bool(score.noise_std < 0.01)
    True
    """
    labels, codes = read_codes(y_true, classes)
    probabilities = read_probabilities(y_prob, "y_prob", len(codes), len(labels))
    bound = 2.0
    if len(labels) == 2:
        bound = 1.0

    def make_statistics(n_units, guarantee):
        """Return the statistics whose sums are released, as `release_metric` requires."""
        return LossSums(
            n_units=n_units,
            guarantee=guarantee,
            name_of_metric="brier_score",
            loss=_squared_distances,
            bound=bound,
        )

    return release_metric(
        "dp_brier_score",
        len(codes),
        make_statistics,
        (codes, probabilities),
        epsilon=epsilon,
        delta=delta,
        groups=groups,
        accountant=accountant,
        random_state=random_state,
    )
