"""The headline of a privacy report is the cost of all that it names, whatever the ledgers are."""

import math
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

from skdp import (
    DPGridSearchCV,
    DPLogisticRegression,
    DPStandardScaler,
    PrivacyAccountant,
    RandomizedResponseTransformer,
    privacy_report,
)
from skdp.exceptions import RawDataWarning
from skdp.model_selection import make_dp_scorer

X = np.random.default_rng(0).uniform(size=(60, 2))
Y = (X[:, 0] > 0.5).astype(int)
SCALER = (0.5, 0.0)
MODEL = (0.25, 1e-6)
N_FITS = 2 * 3 + 1


def scaler(accountant):
    return DPStandardScaler(SCALER[0], bounds=(0, 1), accountant=accountant)


def model(accountant):
    return DPLogisticRegression(
        MODEL[0], delta=MODEL[1], data_norm=2.0, accountant=accountant, mechanism="output", C=1.0
    )


def ledger(**config):
    return PrivacyAccountant(50.0, 0.01, **config)


def accountants(places):
    """Return the accountants of the two releases."""
    if places == "same ledger":
        return (ledger(),) * 2
    return (ledger(), ledger()) if places == "two ledgers" else (None, None)


def reported(kind, first, second):
    """Return the sources of a report, and how often each of the two releases was made."""
    if kind == "two models":
        return (scaler(first).fit(X), model(second).fit(X, Y)), (1, 1)
    pipe = make_pipeline(scaler(first), model(second))
    if kind == "pipeline":
        return (pipe.fit(X, Y),), (1, 1)
    name = "dplogisticregression__C"
    search = GridSearchCV(pipe, {name: [0.1, 1.0]}, cv=KFold(3)).fit(X, Y)
    return (search,), (N_FITS, N_FITS)


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("places", ["same ledger", "two ledgers", "no accountant"])
@pytest.mark.parametrize("kind", ["pipeline", "two models", "search"])
def test_the_headline_is_the_sum_of_all_charges(kind, places):
    first, second = accountants(places)
    sources, counts = reported(kind, first, second)
    epsilon = SCALER[0] * counts[0] + MODEL[0] * counts[1]
    delta = SCALER[1] * counts[0] + MODEL[1] * counts[1]
    report = privacy_report(*sources)
    (total,) = report.totals
    assert total.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert total.delta == pytest.approx(delta, rel=1e-9)
    assert total.n_charges == sum(counts)
    spent = {id(a): a.epsilon_spent for a in (first, second) if a is not None}
    if spent:
        assert total.epsilon == pytest.approx(math.fsum(spent.values()), rel=1e-9)
    assert report.to_text().count("Total:") == 1


@pytest.mark.parametrize("other", [{"relation": "replace_one"}, {"unit": "group", "max_rows": 2}])
def test_costs_of_other_relations_or_units_do_not_add_up(other):
    report = privacy_report(scaler(ledger()).fit(X), model(ledger(**other)).fit(X, Y))
    assert [total.epsilon for total in report.totals] == [SCALER[0], MODEL[0]]
    for total, name in zip(report.totals, ["DPStandardScaler", "DPLogisticReg"], strict=True):
        assert total.of.startswith(name) and " and DP" not in total.of
        assert "no single total: 2 ledgers" in total.composition
    assert "no single total" in " ".join(report.to_text().split())


def test_other_compositions_and_releases_in_no_ledger_add_up():
    """The total of one ledger may be less than a sum; beside others it is added."""
    accountant = ledger(composition="zcdp")
    sources = [scaler(accountant).fit(X) for _ in range(5)]
    own = accountant.epsilon_spent
    report = privacy_report(*sources, model(None).fit(X, Y))
    (total,) = report.totals
    assert total.epsilon == pytest.approx(own + MODEL[0], rel=1e-9)
    assert total.delta == pytest.approx(accountant.delta_spent + MODEL[1], rel=1e-9)
    assert len(total.parts) == 2 and "releases in no ledger" in total.composition


def test_a_single_best_model_is_not_the_total():
    """One statement, but a search that charged for every candidate and fold."""
    accountant = ledger()
    search = GridSearchCV(model(accountant), {"C": [0.1, 1.0]}, cv=KFold(3)).fit(X, Y)
    text = " ".join(privacy_report(search).to_text().split())
    assert "Total: the private part of GridSearchCV is (1.75, 7e-06)" in text
    assert text.index("GridSearchCV is (1.75, 7e-06)") < text.index("DPLogisticRegression")


def test_fits_of_an_unknown_cost_are_named():
    """Candidates with other budgets and without a ledger leave nothing to compute a total from."""
    search = GridSearchCV(model(None), {"epsilon": [0.1, 0.25]}, cv=KFold(3)).fit(X, Y)
    (total,) = privacy_report(search).totals
    assert "without the other fits of GridSearchCV, which are charged in addition" in total.of
    accountant = ledger()
    search = GridSearchCV(model(accountant), {"epsilon": [0.1, 0.25]}, cv=KFold(3)).fit(X, Y)
    (total,) = privacy_report(search).totals
    assert total.epsilon == pytest.approx(accountant.epsilon_spent)


def test_a_private_search_counts_once():
    accountant = ledger()
    search = DPGridSearchCV(
        model(None), {"C": [0.1, 1.0]}, epsilon=2.0, delta=1e-5, accountant=accountant, cv=2
    ).fit(X, Y)
    (total,) = privacy_report(search).totals
    assert total.epsilon == pytest.approx(accountant.epsilon_spent) and total.n_charges == 1


FOLDS = KFold(3, shuffle=True, random_state=0)
SCORE = 0.125


def grid(estimator, scorer, **params):
    return GridSearchCV(estimator, {"C": [0.1, 1.0]}, scoring=scorer, cv=FOLDS, **params)


# Wrappers of a private model, most of them with private scores, and the number of fits that a
# report knows without a ledger; None if it knows all releases.
WRAPPERS = {
    "search": (grid, None),
    "search with training scores": (
        lambda model, scorer: grid(model, scorer, return_train_score=True),
        None,
    ),
    "search with two scores": (
        lambda model, scorer: grid(model, {"a": scorer, "b": scorer}, refit="a"),
        None,
    ),
    "search without refit": (lambda model, scorer: grid(model, scorer, refit=False), 0),
    "halving": (
        lambda model, scorer: HalvingGridSearchCV(
            model, {"C": [0.1, 1.0, 3.0]}, scoring=scorer, cv=FOLDS, min_resources=20
        ),
        None,
    ),
    "raw scores": (lambda model, scorer: grid(model, "accuracy"), None),
    "sequential": (
        lambda model, scorer: SequentialFeatureSelector(
            model, n_features_to_select=1, scoring=scorer, cv=FOLDS
        ),
        0,
    ),
    "sequential in a pipeline": (
        lambda model, scorer: make_pipeline(
            SequentialFeatureSelector(model, n_features_to_select=1, scoring=scorer, cv=FOLDS),
            clone(model),
        ),
        1,
    ),
    "elimination": (lambda model, scorer: RFECV(model, scoring=scorer, cv=FOLDS), 1),
    "elimination by coefficients": (lambda model, scorer: RFE(model, n_features_to_select=1), 1),
    "no elimination": (lambda model, scorer: RFE(model, n_features_to_select=2), None),
    "selection": (lambda model, scorer: make_pipeline(SelectFromModel(model), clone(model)), None),
    "vote": (lambda model, scorer: VotingClassifier([("a", model)]), None),
    "own vote": (lambda model, scorer: OwnVote([("a", model)]), 1),
    "threshold": (lambda model, scorer: FixedThresholdClassifier(model), None),
    "one against the rest": (lambda model, scorer: OneVsRestClassifier(model), None),
    "stack": (lambda model, scorer: StackingClassifier([("a", model)], model, cv=FOLDS), 2),
}
# Wrappers that may have made other fits; whether they did is not known.
UNKNOWN = ("own vote",)


class OwnVote(VotingClassifier):
    """A class that scikit-learn does not have."""


@pytest.mark.quick_cases(every=19)
@pytest.mark.parametrize("place", ["same ledger", "two ledgers", "no ledger"])
@pytest.mark.parametrize("name", WRAPPERS)
def test_a_report_of_a_wrapper_says_what_it_has_charged(name, place):
    make, n_known = WRAPPERS[name]

    def fitted(first, second):
        scorer = make_dp_scorer("accuracy", epsilon=SCORE, accountant=second)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            wrapper = make(model(first), scorer).fit(X, Y)
        return wrapper, [w for w in caught if issubclass(w.category, RawDataWarning)]

    given = accountants(place)
    wrapper, raw = fitted(*given)
    if place == "no ledger":
        # The charges of an equal wrapper.
        given = (ledger(),) * 2
        fitted(*given)
    charges = [charge for accountant in dict.fromkeys(given) for charge in accountant.charges]
    n_scores = sum(charge.label == "DPScorer" for charge in charges)
    report = privacy_report(wrapper)
    text = " ".join(report.summary.conclusion)
    assert "not about a model" not in text and "no plan covers" not in report.to_text()
    # The table that judges a fit judges the report, but a subclass is not known to it.
    assert bool(report.without_statement) == bool(raw or name in UNKNOWN)
    assert ("Therefore the whole has no guarantee" in text) == bool(report.without_statement)
    assert not any("; ." in sentence for sentence in report.uncovered)
    if place != "no ledger" or n_known is None:
        (total,) = report.totals
        assert total.epsilon == pytest.approx(math.fsum(charge.epsilon for charge in charges))
        assert total.n_charges == len(charges)
        assert "without" not in total.of and not report.missing
        if place == "two ledgers" and n_scores:
            assert f"({n_scores * SCORE:g}, 0) in data set" in " ".join(total.parts)
        return
    assert math.fsum(total.epsilon for total in report.totals) == pytest.approx(n_known * MODEL[0])
    assert ("which are charged in addition" in text) == (bool(n_known) and name not in UNKNOWN)
    assert ("fits that OwnVote may have made" in text) == (name in UNKNOWN)
    assert ("NO TOTAL: " in text) == (n_known == 0)
    assert any("the scores of" in release for release in report.missing) == bool(n_scores)
    for release in report.missing:
        assert release in text


def test_scores_of_another_search_in_the_ledger_are_at_most_too_many():
    """A search counts no charge that was made after its model."""
    accountant = ledger()
    scorer = make_dp_scorer("accuracy", epsilon=SCORE, accountant=accountant)
    search = grid(model(accountant), scorer).fit(X, Y)
    spent = accountant.epsilon_spent
    scorer(search, X, Y)
    (total,) = privacy_report(search).totals
    assert total.epsilon == pytest.approx(spent) and accountant.epsilon_spent > spent


def test_a_headline_has_one_subject():
    """Each total is of one model, or of the combination of several."""
    first, second = ledger(), ledger(relation="replace_one")
    sources = [scaler(first).fit(X), model(first).fit(X, Y), model(second).fit(X, Y)]
    report = privacy_report(*sources)
    starts = [total.of.partition(" alone ")[0] for total in report.totals]
    both = "the combination of DPStandardScaler and DPLogisticRegression"
    assert starts == [both, "DPLogisticRegression"]
    sentences = [text for text in report.summary.conclusion if " is (" in text]
    assert sentences[0].startswith(f"T{both[1:]} alone (no single total")
    # Releases of unknown cost are named beside the models, not as one of them.
    search = GridSearchCV(model(None), {"epsilon": [0.1, 0.25]}, cv=KFold(3)).fit(X, Y)
    (total,) = privacy_report(scaler(ledger()).fit(X), search).totals
    assert total.of.startswith(f"{both}, without the other fits of GridSearchCV")


def test_a_total_that_may_count_charges_of_others_says_so():
    accountant = ledger()
    pipe = make_pipeline(scaler(accountant), model(accountant)).fit(X, Y)
    (total,) = privacy_report(pipe).totals
    assert "may be more" not in total.composition
    search = GridSearchCV(model(accountant), {"C": [0.1, 1.0]}, cv=KFold(3)).fit(X, Y)
    (total,) = privacy_report(search).totals
    # The search made 7 fits; the pipeline's model has the same label.
    assert total.n_charges == N_FITS + 1
    assert "may be higher than its cost" in total.composition


@pytest.mark.parametrize("config", [{}, {"unit": "group", "max_rows": 2}, None])
def test_releases_that_are_charged_later_are_in_no_total(config):
    accountant = None if config is None else ledger(**config)
    rows = X.round()
    reports = RandomizedResponseTransformer(0.5, categories=[[0.0, 1.0]] * 2, accountant=accountant)
    reports.fit(rows).transform(rows)
    (sentence,) = privacy_report(reports).summary.conclusion
    assert "charged nothing. Each of its later releases is (0.5, 0)" in sentence
    assert ("charged when it is made" in sentence) == (accountant is not None)
    pipe = make_pipeline(reports, model(accountant)).fit(rows, Y)
    report = privacy_report(pipe)
    (total,) = report.totals
    assert total.epsilon == MODEL[0]
    assert "is not part of any total of the model" in report.summary.conclusion[-1]
