"""A statement of several calls names the place and cost of each of them, as reports do."""

import itertools
import math

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import skdp
from skdp import PrivacyAccountant, privacy_report
from skdp.accounting import PureDP
from skdp.pipeline import split_budget

N = 60
X = np.random.default_rng(0).uniform(size=(N, 3))
Y = np.arange(N) % 2


def ledger(dataset, **config):
    return PrivacyAccountant(1e3, 0.5, dataset=dataset, **config)


def sgd(epsilon=0.5):
    return skdp.DPSGDClassifier(epsilon, delta=0.0, classes=[0, 1], max_iter=1)


def begin(kind, accountant):
    """Return a model after a first fit, and the text that says what the fit is part of."""
    if kind == "call":
        return sgd().set_params(accountant=accountant).partial_fit(X, Y), ""
    if kind == "fit":
        return sgd().set_params(accountant=accountant).fit(X, Y), ""
    if kind == "search":
        search = skdp.DPGridSearchCV(
            sgd(), {"alpha": [0.1, 1.0]}, epsilon=2.0, delta=0.0, strategy="holdout"
        )
        best = search.set_params(accountant=accountant).fit(X, Y).best_estimator_
        return best.set_params(epsilon=0.5), "epsilon and delta are those of the search"
    pipe = make_pipeline(skdp.DPStandardScaler(bounds=(0, 1)), sgd())
    return split_budget(pipe, 1.0, 0.0, accountant).fit(X, Y)[-1], "part of a plan of 2 releases"


PLACES = ("none", "north", "south", "reserved of north", "user of south")
SEQUENCES = [*itertools.product(("call", "fit", "search", "split"), PLACES, PLACES)]


@pytest.mark.quick_cases(cover="pairs")
@pytest.mark.parametrize(("kind", "first", "second"), SEQUENCES)
def test_each_call_is_named_with_its_place(kind, first, second):
    north, south = ledger("north"), ledger("south")
    handles = {"none": None, "north": north, "south": south, "user of south": south.as_user("amy")}
    handles["reserved of north"] = north.reserve(20.0)
    names = {place: place.rpartition(" ")[2] for place in PLACES}
    if kind == "split" and first == "none":
        # A step of a plan without an accountant is refused with another one.
        first = "north"
    model, part = begin(kind, handles[first])
    charged = [model.privacy_.charges[0]]
    n_releases = len(model.privacy_.charges)
    calls = ([] if kind == "split" else [handles[first]]) + [handles[second]]
    for accountant in calls:
        model.set_params(accountant=accountant).partial_fit(X, Y)
        charged.append(model.privacy_.charges[-1])
    statement = model.privacy_
    words = dict(statement.rows())
    assert n_releases == 1 and len(statement.charges) == len(charged)
    assert statement.epsilon == pytest.approx(math.fsum(c.epsilon for c in charged))
    # Each call's place, record and plan.
    places = [names[first]] * (len(charged) - 1) + [names[second]]
    for charge, place, call in zip(charged, places, statement.calls, strict=True):
        assert call.dataset == ("" if place == "none" else place)
        assert call.record == charge.hash and bool(charge.hash) == (place != "none")
        assert charge.hash in words["record"]
    assert ("none: no accountant" in words["record"]) is ("none" in places)
    named = tuple(dict.fromkeys(place for place in places if place != "none"))
    assert statement.datasets == named
    for name in named:
        assert name in words["data set"]
    if len(set(places)) > 1:
        assert words["data set"].count("of partial_fit: ") >= 1
    # What one call is part of is not said of the model.
    text = words["composition"] + words.get("part of", "")
    if part:
        assert part in text
        assert f"fit: {part}" in words["composition"] or words["part of"].startswith("fit: ")
    # The report counts each charge once, wherever it was made.
    report = privacy_report(model)
    (total,) = report.totals
    cost = math.fsum(c.epsilon for c in charged)
    listed = {c.hash for budget in report.budgets for c in budget.charges}
    if kind == "split" and charged[0].hash in listed:
        # The whole plan was charged for the step.
        cost += 1.0 - charged[0].epsilon
    assert total.epsilon == pytest.approx(cost) and total.n_charges == len(charged)
    # The ledger of the last accountant is read, with all data sets in it.
    unread = [c for c in charged if c.hash and c.hash not in listed]
    expected = "in a ledger that is not in this report"
    assert any(expected in text for text in total.parts) is bool(unread and total.parts)
    if second in ("north", "reserved of north"):
        assert all(call.dataset != "north" for call in statement.calls if call.record not in listed)


def test_calls_of_a_plan_say_that_each_is_part_of_it():
    accountant = ledger("north")
    pipe = make_pipeline(skdp.DPStandardScaler(bounds=(0, 1)), sgd())
    step = split_budget(pipe, 1.0, 0.0, accountant).fit(X, Y)[-1].partial_fit(X, Y)
    composition = dict(step.privacy_.rows())["composition"]
    assert composition.count("charged as one, (epsilon=1, delta=0) together") == 2
    assert (
        "; fit: part of a plan" in composition and "call 1 of partial_fit: part of" in composition
    )


@pytest.mark.parametrize("n_reserved", [1, 2, 3])
@pytest.mark.parametrize("is_nested", [False, True])
def test_reserved_budgets_are_reported_as_their_data_set(n_reserved, is_nested):
    clinic = PrivacyAccountant(1.0, 0.0, dataset="clinic")
    models = []
    for _ in range(n_reserved):
        reserved = clinic.reserve(0.125)
        reserved = reserved.reserve(0.125) if is_nested else reserved
        model = skdp.DPMeanTransformer(0.0625, bounds=(0, 1), accountant=reserved).fit(X)
        assert (
            model.privacy_.dataset == "clinic"
            and dict(model.privacy_.rows())["data set"] == "clinic"
        )
        assert (
            f"{reserved.dataset!r} was reserved from data set 'clinic'"
            in model.privacy_.composition
        )
        models.append(model)
    clinic.charge(PureDP(0.5))
    spent = 0.5 + 0.125 * n_reserved
    report = privacy_report(*models)
    (total,) = report.totals
    assert (total.epsilon, total.dataset) == (0.0625 * n_reserved, "clinic")
    assert total.n_charges == n_reserved and total.composition == "basic" and not total.parts
    assert total.head_hash == clinic.report().head_hash
    facts = dict(report.summary.facts)
    assert facts["total of the model"].endswith("data set 'clinic'")
    assert facts["total of data set 'clinic'"].startswith(f"epsilon = {spent:g}, delta = 0; ")
    assert "of a limit of epsilon = 1," in facts["total of data set 'clinic'"]
    budgets = {budget.dataset for budget in report.budgets if budget.reserved_from}
    for name in budgets:
        assert facts[f"total of the budget {name!r}"].endswith("among the charges of 'clinic'")
    assert len(budgets) == n_reserved
    # Without its data set the report says that the total is missing.
    alone = dict(privacy_report(reserved.report()).summary.facts)
    assert alone["total of data set 'clinic'"].startswith("not known")


def test_a_selection_of_charges_never_replaces_all_of_them():
    amy = ledger("clinic").as_user("amy")
    model = skdp.DPMeanTransformer(0.5, bounds=(0, 1), accountant=amy).fit(X)
    amy.as_user("bob").charge(PureDP(2.0))
    for user, sources in itertools.product(("amy", "bob"), ("alone", "first", "last")):
        selected = amy.report().select(user=user)
        assert selected.n_charges == 2 and len(selected.charges) == 1
        given = {"alone": (selected,), "first": (selected, model), "last": (model, selected)}
        report = privacy_report(*given[sources])
        facts = dict(report.summary.facts)
        text = facts["total of data set 'clinic'"]
        assert text.startswith("epsilon = 2.5, delta = 0; 2 charges")
        assert (f"only those of user {user} are listed" in text) is (sources == "alone")
        (budget,) = report.budgets
        assert len(budget.charges) == (1 if sources == "alone" else 2)
        if sources != "alone":
            assert report.summary.conclusion[0].startswith("DPMeanTransformer is (0.5, 0)-")
    # Neither a ledger nor the class of a statement is the subject of a headline.
    for sources in ((model.privacy_,), (model.privacy_, amy), (amy.report(), model.privacy_)):
        assert privacy_report(*sources).summary.conclusion[0].startswith("DPMeanTransformer is ")
    both = privacy_report(model, model.privacy_).summary.conclusion[0]
    assert both.startswith(
        "The combination of DPMeanTransformer and DPMeanTransformer is (0.5, 0)-"
    )


@pytest.mark.parametrize("by_index", [True, False])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("places", [(0, 1), (1, 1), (0, "all"), ("all", 1), (2, 0, "all")])
def test_calls_on_disjoint_parts_are_not_said_to_add_up(places, relation, by_index):
    """Releases from all rows add to those of the parts, and the text holds with them, too."""
    root = ledger("clinic", relation=relation)
    parts = root.disjoint("site", 3, by_index=by_index)
    model = sgd()
    for place in places:
        model.set_params(accountant=root if place == "all" else parts[place]).partial_fit(X, Y)
    statement = model.privacy_
    assert statement.epsilon == pytest.approx(root.epsilon_spent)
    words = dict(statement.rows())
    assert ("a separate charge, which adds" in words["sampler"]) is ("all" in places)
    table = str(root.report())
    for place in (place for place in places if place != "all"):
        assert f"part {place + 1} of the disjoint parts 'site'" in words["sampler"]
        assert f"part {place + 1} of 3 disjoint parts 'site'" in words["public"]
        assert f"(part {place + 1} of 3 of 'site')" in " ".join(table.split())
    assert "part 0 of" not in words["public"]
    assert "the total is" not in words["public"]
    (total,) = privacy_report(model).totals
    assert total.epsilon == pytest.approx(root.epsilon_spent)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("composition", ["basic", "zcdp", "rdp", "gdp"])
def test_calls_on_the_same_rows_cost_what_the_ledger_says(composition):
    """The statement composes the calls by the rule of the accountant, at the accountant's delta."""
    rows = np.random.default_rng(0).normal(size=(200, 2))
    y = (rows[:, 0] > 0).astype(int)
    order = 8 if composition == "rdp" else None
    accountant = PrivacyAccountant(100.0, 1e-4, composition=composition, rdp_order=order)
    model = skdp.DPSGDClassifier(0.5, delta=1e-6, accountant=accountant, data_norm=4.0)
    for _ in range(2):
        model.partial_fit(rows, y, classes=[0, 1])
    spent = accountant.epsilon_spent, accountant.delta_spent
    assert (model.privacy_.epsilon, model.privacy_.delta) == pytest.approx(spent, rel=1e-9)


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
@pytest.mark.parametrize("n_ledgers", [1, 2, 3])
def test_ledgers_with_data_sets_of_one_name_are_told_apart(n_ledgers, composition):
    accountants = [PrivacyAccountant(1e3, 0.5, composition=composition) for _ in range(n_ledgers)]
    model = sgd()
    for accountant in accountants:
        model.set_params(accountant=accountant).partial_fit(X, Y).partial_fit(X, Y)
    rows = dict(model.privacy_.rows())
    for i in range(1, n_ledgers + 1):
        for name in ("data set", "record"):
            assert (f"'default' of ledger {i}" in rows[name]) == (n_ledgers > 1)
    assert rows["composition"].startswith(f"{composition}, over the calls") == (n_ledgers > 1)
    unread = privacy_report(model.privacy_).summary.facts
    plural = n_ledgers > 1
    assert any("the ledgers are not in this report" in text for _, text in unread) is plural
    report = privacy_report(model, *accountants)
    (total,) = report.totals
    hashes = {budget.head_hash[:12] for budget in report.budgets}
    assert len(hashes) == n_ledgers
    if plural:
        assert all(sum(hash_ in part for part in total.parts) == 1 for hash_ in hashes)


@pytest.mark.parametrize("sources", ["relations", "units", "ledgers", "reserved", "roots"])
def test_each_fact_of_a_report_has_a_name_of_its_own(sources):
    configs = {
        "relations": ({}, {"relation": "replace_one"}),
        "units": ({}, {"unit": "group", "max_rows": 2}),
    }
    accountants = [
        PrivacyAccountant(1e3, 0.5, **config) for config in configs.get(sources, ({}, {}))
    ]
    if sources in ("reserved", "roots"):
        accountants = [accountant.reserve(50.0) for accountant in accountants]
    models = [sgd().set_params(accountant=a).fit(X, Y) for a in accountants]
    if sources == "roots":
        # Only the reserved budgets are in the report, and the first ledger.
        models = [accountant.report() for accountant in accountants]
        models.append(PrivacyAccountant(1.0, 0.0))
    report = privacy_report(*models)
    facts = report.summary.facts
    assert report.to_dict()["summary"] == {
        "conclusion": list(report.summary.conclusion),
        **dict(facts),
    }
    assert len(dict(facts)) == len(facts)


@pytest.mark.parametrize("n_seeded", [0, 1, 2, 3])
def test_a_report_says_how_many_releases_of_one_class_were_seeded(n_seeded):
    models = [
        sgd().set_params(random_state=0 if i < n_seeded else None).fit(X, Y) for i in range(3)
    ]
    text = " ".join(privacy_report(*models).summary.conclusion)
    subjects = {
        0: None,
        1: "The noise of 1 of 3 releases by DPSGDClassifier was SEEDED",
        2: "The noise of 2 of 3 releases by DPSGDClassifier was SEEDED",
        3: "The noise was SEEDED",
    }
    assert ("SEEDED" in text) == (n_seeded > 0)
    assert n_seeded == 0 or subjects[n_seeded] in text


FILTERS = {"user": ("", "amy"), "purpose": ("", "a study"), "since": ("2026-01-01",)}


@pytest.mark.parametrize(
    "values", [*itertools.product(*((None, *options) for options in FILTERS.values()))]
)
def test_a_selection_is_described_in_words(values):
    accountant = ledger("north")
    accountant.as_user("amy", purpose="a study").charge(PureDP(0.1))
    filters = dict(zip(FILTERS, values, strict=True))
    report = accountant.report().select(**filters)
    words = {
        ("user", ""): "of no named user",
        ("user", "amy"): "of user amy",
        ("purpose", ""): "for no named purpose",
        ("purpose", "a study"): "for purpose a study",
        ("since", "2026-01-01"): "since 2026-01-01",
    }
    expected = " ".join(words[item] for item in filters.items() if item[1] is not None)
    summary = dict(report.summary())
    if not expected:
        assert report.shown == ""
        assert "charges" not in summary
        return
    assert summary["charges"].startswith(f"only those {expected} are listed;")
    document = privacy_report(report).to_text()
    assert f"(only those {expected} are listed)" in " ".join(document.split())
    # The totals cover charges that are not listed, whose noise may be seeded.
    assert "No one who sees a release knows a seed of its noise." in document
