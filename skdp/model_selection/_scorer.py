"""A scorer for scikit-learn whose value is a release."""

from sklearn.utils import check_consistent_length

from skdp._data._tables import indexable_table, read_numeric_target, read_target
from skdp.accounting import Guarantee
from skdp.base import PrivateRelease, relation_of
from skdp.mechanisms._plan import bounded_noise
from skdp.model_selection._scores import bounded_score
from skdp.utils._validation import check_privacy_parameters


class DPScorer:
    """A scorer that charges an accountant and returns a noisy score; see `make_dp_scorer`.

    Parameters
    ----------
    score : BoundedScore
        What is computed, and how far a row moves it.
    epsilon, delta : float
        Of each call.
    accountant : PrivacyAccountant or None
        Where calls are charged.
    random_state : int or None
        None is the operating system's generator.
    """

    def __init__(self, score, epsilon, delta, accountant=None, random_state=None):
        self.score = score
        self.epsilon, self.delta = check_privacy_parameters(epsilon, delta)
        self.accountant, self.random_state = accountant, random_state
        relation_of(accountant)

    def __call__(self, estimator, X, y):
        """Charge one release and return it.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the estimator lacks what the score needs, X has not the columns that it was fitted
            to, or y holds no labels, or numbers, of these rows; nothing was charged. What its
            predictions raise on these rows comes after the charge.
        BudgetExceededError
            If the accountant refuses; nothing was scored.
        """
        check_consistent_length(X, y)
        self.score.check_methods(estimator)
        X = indexable_table(X)
        y = (read_target if self.score.of_labels else read_numeric_target)(estimator, y, X.shape[0])
        width = getattr(estimator, "n_features_in_", None)
        if width is not None and X.shape[1:] != (width,):
            name = type(estimator).__name__
            raise ValueError(f"X has shape {X.shape}, but {name} was fitted to {width} features")
        sensitivity = self.score.sensitivity(len(y), relation_of(self.accountant))
        guarantee = Guarantee(epsilon=self.epsilon, delta=self.delta)
        mechanism = bounded_noise(guarantee, sensitivity, sensitivity)
        terms = {"accountant": self.accountant, "random_state": self.random_state}
        with PrivateRelease(label=type(self).__name__, **terms) as release:
            source = release.charge(mechanism)
            value = self.score.value(estimator, X, y)
            return float(mechanism.release(value, random_state=source))

    def __repr__(self):
        return f"DPScorer({self.score!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def make_dp_scorer(
    name, *, epsilon=1.0, delta=0.0, accountant=None, random_state=None, **parameters
):
    """Return a scorer whose value is a differentially private release.

    Parameters
    ----------
    name : str or BoundedScore
        As in `bounded_score`: "accuracy", "roc_auc", ...
    epsilon : float, default=1.0
        Of each call, positive.
    delta : float, default=0.0
        Of each call, in [0, 1). 0 adds Laplace noise, more adds Gaussian noise.
    accountant : PrivacyAccountant, default=None
        Where calls are charged. None charges nothing and protects under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. With an int every
        call draws the same noise, and whoever knows the int can remove it.
    **parameters
        What the score needs; see `bounded_score`.

    Returns
    -------
    DPScorer
        ``scorer(estimator, X, y)``, larger is better. The value can lie outside the score's
        range, by the noise.

    Raises
    ------
    ValueError
        If the score's sensitivity is not known, or a parameter is out of range.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private for the scored rows; the number of
    them is public, and the estimator is taken as it is. Sensitivities are derived in
    ``docs/model_selection.md``.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from skdp import DPLogisticRegression, PrivacyAccountant
    >>> from skdp.model_selection import make_dp_scorer
    >>> X, y = make_classification(n_samples=5000, random_state=0)
    >>> accountant = PrivacyAccountant(epsilon=6.0, delta=1e-5)
    >>> model = DPLogisticRegression(epsilon=1.0, delta=1e-6, accountant=accountant)
    >>> scorer = make_dp_scorer("accuracy", epsilon=0.2, accountant=accountant)
    >>> scores = cross_val_score(
    ...     model, X, y, cv=KFold(5, shuffle=True, random_state=0), scoring=scorer
    ... )
    >>> accountant.epsilon_spent
    6.0
    """
    score = bounded_score(name, **parameters)
    return DPScorer(score, epsilon, delta, accountant, random_state)
