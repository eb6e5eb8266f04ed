"""Display of accuracy against epsilon."""

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from skdp.utils._display import Display, text_color


class PrivacyUtilityDisplay(Display):
    """Display of an estimator's score against epsilon.

    Create it with `from_estimator`. Each point is the mean of several fits to the same rows. On
    private data, the curve costs the sum of the epsilons of all fits, and the scores are not
    private. The title shows the cost. Use public data, or data whose budget may be spent on this
    curve.

    Parameters
    ----------
    epsilons : ndarray of shape (n_epsilons,)
        The epsilons of the fits.
    scores : ndarray of shape (n_epsilons, n_repeats)
        One row per epsilon.
    reference : float or None
        Score of a model without privacy.
    cost : float
        The sum of the epsilons of all fits.
    score_name : str
        Label of the vertical axis.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curve.
    figure_ : matplotlib Figure
        Figure that holds it.
    line_ : matplotlib Line2D
        The mean scores.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from skdp import DPLogisticRegression
    >>> from skdp.display import PrivacyUtilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> display = PrivacyUtilityDisplay.from_estimator(
    ...     DPLogisticRegression(data_norm=3000.0), X, y, epsilons=[1.0, 10.0], n_repeats=2
    ... )
    >>> display.cost
    22.0
    """

    def __init__(
        self,
        epsilons: np.ndarray,
        scores: np.ndarray,
        *,
        reference: float | None = None,
        cost: float,
        score_name: str = "score",
    ):
        self.epsilons = epsilons
        self.scores = scores
        self.reference = reference
        self.cost = cost
        self.score_name = score_name

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y,
        *,
        epsilons,
        n_repeats=5,
        test_size=0.25,
        scoring=None,
        reference=None,
        random_state=0,
    ):
        """Fit an estimator at several epsilons and score it on held-out rows.

        Parameters
        ----------
        estimator : estimator
            Estimator with a parameter `epsilon`. If it has an accountant, each fit is charged.
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets or labels.
        epsilons : array-like of float
            The epsilons of the fits.
        n_repeats : int, default=5
            Number of fits at each epsilon; the standard deviation of their scores is drawn.
        test_size : float or int, default=0.25
            Fraction, or number, of the rows that are held out for scoring.
        scoring : callable, default=None
            A scorer ``f(estimator, X, y)``; None uses the estimator's `score`.
        reference : estimator, default=None
            A model without privacy, fitted to the same rows.
        random_state : int, default=0
            Seed of the split, which depends only on the rows' positions.

        Returns
        -------
        PrivacyUtilityDisplay
        """
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=test_size, random_state=random_state
        )
        epsilons = np.asarray(epsilons, dtype=np.float64)
        claims = [clone(estimator).set_params(epsilon=epsilon) for epsilon in epsilons]

        def fit_and_score(model):
            """Return the score on the test rows of a fitted clone."""
            fitted = clone(model).fit(X, y)
            if scoring is None:
                return fitted.score(X_test, y_test)
            return scoring(fitted, X_test, y_test)

        scores = [[fit_and_score(claim) for _ in range(n_repeats)] for claim in claims]
        if reference is not None:
            reference = fit_and_score(reference)
        cost = float(n_repeats * epsilons.sum())
        name = getattr(scoring, "__name__", "score on held-out rows")
        return cls(epsilons, np.array(scores), reference=reference, cost=cost, score_name=name)

    def _draw(self, ax):
        """Draw the mean score and its standard deviation."""
        mean = self.scores.mean(axis=1)
        std = self.scores.std(axis=1)
        (self.line_,) = ax.semilogx(self.epsilons, mean, "o-", label="private, mean")
        band = mean - std, mean + std
        ax.fill_between(self.epsilons, *band, alpha=0.2, label="± standard deviation")
        if self.reference is not None:
            color = text_color(ax)
            ax.axhline(self.reference, color=color, linestyle="--", label="without privacy")
        title = f"{self.scores.size} fits: drawing this spent ε = {self.cost:g} by addition"
        ax.set(xlabel="ε", ylabel=self.score_name, title=title)
        ax.legend(loc="lower right")
