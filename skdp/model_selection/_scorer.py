"""Scorer for scikit-learn that returns a noisy score and charges it."""

from sklearn.utils.metadata_routing import MetadataRequest

from skdp._data._dask import in_one_run
from skdp._data._tables import indexable_table, read_numeric_target, read_target
from skdp._fitting._callers import has_warned_around
from skdp._fitting._members import register_member_check, register_validation_check
from skdp._fitting._scored_models import RefusedScore, check_scored, hides_errors_of_scores
from skdp._fitting._waiting_threads import is_sent_to_workers
from skdp.base import private_release, raw_data_policy, terms_of
from skdp.exceptions import RawDataWarning
from skdp.ledger import PrivacyAccountant
from skdp.mechanisms._plan import bounded_noise, plan_for, plan_release
from skdp.model_selection._evaluation_task import check_labels, check_row_wise, make_task
from skdp.model_selection._scored_tables import (
    PredictedModel,
    check_scored_labels,
    check_scored_table,
    is_read_before_charge,
)
from skdp.model_selection._scores import RELEASED_BY_COUNTS, BoundedScore, bounded_score
from skdp.model_selection._validation_checks import check_searches, check_validation
from skdp.utils._validation import check_privacy_parameters

# Private fits check the validations around them, but must not import this package.
register_member_check(check_searches)
register_validation_check(check_validation)


class DPScorer:
    """A scorer that charges an accountant and returns a noisy score; see `make_dp_scorer`.

    Parameters
    ----------
    score : BoundedScore
        The score and its sensitivity.
    epsilon, delta : float
        Budget of each call.
    accountant : PrivacyAccountant or None
        The accountant that each call charges.
    random_state : int or None
        None uses the operating system's generator.
    """

    # Tools such as `cross_val_score` may call this scorer on raw rows, because it returns a
    # release.
    releases_privately = True

    def __init__(
        self,
        score: BoundedScore,
        epsilon: float,
        delta: float,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ):
        self.score = score
        self.epsilon, self.delta = check_privacy_parameters(epsilon, delta)
        self.accountant = accountant
        self.random_state = random_state
        terms_of(accountant)
        # scikit-learn's displays of curves read the label of their axis from `__name__`.
        self.__name__ = getattr(score, "name", type(score).__name__)

    def __getstate__(self):
        # A worker process does not repeat the warnings of this one.
        state = {name: value for name, value in vars(self).items() if name != "_was_reported"}
        if is_sent_to_workers() and has_warned_around():
            state["_was_reported"] = True
        return state

    @property
    def _score_func(self):
        """Raise `AttributeError`, because no charge covers the scores of many thresholds."""
        # `TunedThresholdClassifierCV` reads this attribute before its first fit, to score many
        # thresholds.
        raise AttributeError(
            f"{type(self).__name__} scores one table once, but TunedThresholdClassifierCV asks "
            "for the scores of many thresholds, which no charge covers: use "
            "DPTunedThresholdClassifierCV, FixedThresholdClassifier with a threshold that you "
            "choose without these rows, or class_weight='balanced'. Nothing was computed or "
            "charged"
        )

    @in_one_run
    def __call__(self, estimator, X, y, groups=None):
        """Charge and return a noisy score.

        Parameters
        ----------
        estimator : estimator
            Fitted.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), default=None
            Person id of each row; the privacy unit is then a person. scikit-learn functions that
            route metadata pass it if the accountant has unit="person".

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the estimator is not fitted or does not suit the score, X has different columns from
            those in `fit`, a container or a cell that the estimator refuses, or y has no valid
            labels or numbers; nothing was charged. If the model is from neither skdp nor
            scikit-learn, errors in its `predict` are raised after the charge.
        BudgetExceededError
            If the remaining budget is too small; nothing was scored.

        Warns
        -----
        RawDataWarning
            Before the charge, if the estimator or a part of it learns from raw rows or is unknown,
            or if a tool mixes cells of several rows. If the accountant has ``on_raw_data="raise"``,
            a `ValueError` is raised instead, even in searches that replace other errors with a
            score of NaN.
        """
        try:
            check_scored(estimator, self, lambda: raw_data_policy(terms_of(self.accountant)))
        except (ValueError, RawDataWarning) as error:
            if hides_errors_of_scores():
                return RefusedScore(error)
            raise
        X = indexable_table(X)
        if self.score.of_labels:
            y = read_target(estimator, y, X.shape[0])
        else:
            y = read_numeric_target(estimator, y, X.shape[0])
        check_scored_labels(self.score, estimator, y)
        n_features = getattr(estimator, "n_features_in_", None)
        if n_features is not None and X.shape[1:] != (n_features,):
            name = type(estimator).__name__
            raise ValueError(
                f"X has shape {X.shape}, but {name} was fitted to {n_features} features: pass the "
                "columns of its fit"
            )
        check_scored_table(estimator, X)
        with private_release(
            label=type(self).__name__,
            accountant=self.accountant,
            random_state=self.random_state,
            are_callers_checked=True,
        ) as release:
            n_units = release.read_groups(groups, len(y))
            self.score.check_methods(estimator, release.run_params.get("persons"))
            if release.terms.unit == "person":
                check_row_wise(estimator)
            if self.score.needs_denominators:
                return self._release_ratio(release, estimator, X, y, n_units)
            sensitivity = self.score.sensitivity(n_units, release.terms.relation)

            def plan_score(guarantee):
                """Return the plan of the score plus noise that is calibrated to its sensitivity."""
                mechanism = bounded_noise(guarantee, sensitivity, sensitivity)

                def run(rows, source, **persons):
                    """Return the noisy score."""
                    value = self.score.value(*rows, **persons)
                    return float(mechanism.release(value, random_state=source))

                return plan_release(mechanism, run)

            plan = plan_for(plan_score, release.make_guarantee(self.epsilon, self.delta))
            model = estimator
            # A user-defined score may use more of a model than its predictions.
            is_known = type(self.score).__module__.partition(".")[0] == "skdp"
            if is_known and is_read_before_charge(estimator) and release.can_charge(plan):
                # The prediction shows whether the model refuses a cell. No score is computed before
                # the charge.
                model = PredictedModel(estimator, X, self.score.methods)
            return release.run_charged(plan, (model, X, y), release.charge(plan))

    def _release_ratio(self, release, estimator, X, y, n_units):
        """Release a score whose numerator and denominators are private, as in `dp_evaluate`."""
        bounds = getattr(self.score, "target_bounds", None)
        task = make_task(estimator, [self.score.name], bounds)
        if self.score.of_labels:
            check_labels(y, task.classes)

        def plan_for_unit(guarantee):
            return task.statistics(n_units, guarantee).plan()

        plan = plan_for(plan_for_unit, release.make_guarantee(self.epsilon, self.delta))
        rows = None
        if is_read_before_charge(estimator) and release.can_charge(plan):
            rows = task.rows(estimator, X, y)
        source = release.charge(plan)
        if rows is None:
            rows = task.rows(estimator, X, y)
        released = release.run_charged(plan, rows, source)
        return float(task.evaluate(released).scores[self.score.name])

    def get_metadata_routing(self):
        """Return the metadata request of a call: `groups`, if the privacy unit is a person.

        Returns
        -------
        MetadataRequest
        """
        routing = MetadataRequest(owner=type(self).__name__)
        by_person = terms_of(self.accountant).unit == "person"
        routing.score.add_request(param="groups", alias=by_person)
        return routing

    def __repr__(self):
        return f"DPScorer({self.score!r}, epsilon={self.epsilon:g}, delta={self.delta:g})"


def make_dp_scorer(
    name: str | BoundedScore,
    *,
    epsilon: float = 1.0,
    delta: float = 0.0,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
    **parameters: object,
) -> DPScorer:
    """Return a scorer whose value is a differentially private release.

    Parameters
    ----------
    name : str or BoundedScore
        As in `bounded_score`: "accuracy", "roc_auc", ...; also "average_precision" and "precision".
    epsilon : float, default=1.0
        Budget of each call, positive.
    delta : float, default=0.0
        Budget of each call, in [0, 1). 0 adds Laplace noise, a positive delta Gaussian noise.
    accountant : PrivacyAccountant, default=None
        The accountant that each call charges. None charges nothing and protects under
        "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. With an int, every
        call draws the same noise, and anyone who knows the int can remove the noise.
    **parameters
        Parameters of the score, see `bounded_score`. Without `class_counts` or `target_variance`,
        numerator and denominator are released together, as in `skdp.dp_evaluate`.

    Returns
    -------
    DPScorer
        ``scorer(estimator, X, y)``; larger is better. Because of the noise, the value can be
        outside the range of the score.

    Raises
    ------
    ValueError
        If the score has no known sensitivity, or a parameter is out of range.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private for the scored rows, or persons. The
    number of scored rows or persons is public, and the privacy of the estimator itself is not
    covered. Sensitivities are derived in ``docs/theory/model_selection.md``.

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
    if isinstance(name, str) and name in RELEASED_BY_COUNTS and not parameters:
        score = RELEASED_BY_COUNTS[name]()
    else:
        score = bounded_score(name, **parameters)
    return DPScorer(score, epsilon, delta, accountant, random_state)
