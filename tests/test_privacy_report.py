import dataclasses
import json
import re
import warnings
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Normalizer, OneHotEncoder, StandardScaler

from skdp import (
    DPLogisticRegression,
    DPMeanTransformer,
    DPStandardScaler,
    PrivacyAccountant,
    privacy_report,
)
from skdp.__main__ import main
from skdp.accounting import ApproximateDP, Gaussian, PureDP, get_epsilon
from skdp.audit import EpsilonAudit, membership_inference
from skdp.exceptions import RawDataWarning
from skdp.ledger import Allowance, PlannedCharge
from skdp.model_selection import DPGridSearchCV, make_dp_scorer
from skdp.pipeline import check_pipeline, split_budget

EVIL = "<script>alert('1')</script>\x00\n\u202e&amp; \"x\" | [a](b) `c` ![d](e)"
NAME = "clinic <b>&\"x\"</b> | _a_ *b* 'c'"


def table(n=80):
    X = np.random.default_rng(0).uniform(0.123456, 0.987654, size=(n, 3))
    return X, np.arange(n) % 2


@pytest.fixture(scope="module")
def accountant():
    return PrivacyAccountant(3.0, 1e-5, dataset=NAME)


@pytest.fixture(scope="module")
def pipe(accountant):
    X, y = table()
    pipe = make_pipeline(
        DPStandardScaler(0.5, bounds=(0, 1), accountant=accountant),
        StandardScaler(),
        DPLogisticRegression(1.0, accountant=accountant, random_state=3),
    )
    with warnings.catch_warnings(), pytest.warns(Warning, match="seed"):
        warnings.filterwarnings("ignore", message="the steps .* learn from rows")
        pipe.fit(X, y)
    accountant.charge(PureDP(0.25), label=EVIL)
    return pipe


@pytest.fixture(scope="module")
def report(pipe, accountant):
    X, y = table()
    members = np.arange(len(y)) < 40
    found = membership_inference(pipe, X, y, attack="loss", members=members)
    bound = EpsilonAudit(0.5, 1.0, 1e-6, 0.95, "worst_case", EVIL, 100)
    return privacy_report(pipe, accountant, audits=[bound, found], title=EVIL)


FORMATS = ("to_text", "to_json", "to_html", "to_markdown")


def test_what_is_gathered(report, pipe, accountant):
    assert [s.estimator for s in report.statements] == ["DPStandardScaler", "DPLogisticRegression"]
    # Both steps and the argument name one ledger.
    assert len(report.budgets) == 1
    assert report.budgets[0].spent == (1.75, 1e-6) == accountant.report().spent
    assert report.without_statement == ("Pipeline: standardscaler (StandardScaler)",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.title = "x"


def test_a_leaky_pipeline_begins_with_what_is_not_covered(report):
    first, *others = report.summary.conclusion
    assert first.startswith("NOT COVERED by any guarantee: Pipeline: standardscaler")
    assert any(text.startswith("The private part of Pipeline is") for text in others)
    assert [name for name, _ in report.summary.facts][:2] == [
        "not covered",
        "total of the private part",
    ]
    assert "use DPStandardScaler" in report.uncovered[0]
    text = report.to_text()
    assert text.index("Not covered by any guarantee\n") < text.index("Releases of this report")


PLAIN_STEPS = {
    "stateless": Normalizer(),
    "declared": OneHotEncoder(categories=[[0.5, 1.0]] * 3, handle_unknown="ignore"),
    "passthrough": "passthrough",
    "learns": StandardScaler(),
    "in a container": FeatureUnion([("a", Normalizer()), ("b", StandardScaler())]),
    "sparse by density": make_column_transformer(
        (OneHotEncoder(categories=[[0.5, 1.0]], handle_unknown="ignore"), [0])
    ),
    "accepted container": make_column_transformer((Normalizer(), [0, 1]), sparse_threshold=0),
}


@pytest.mark.parametrize("name", PLAIN_STEPS)
def test_a_report_covers_what_check_pipeline_accepts(name):
    X, y = table()
    pipe = make_pipeline(PLAIN_STEPS[name], DPLogisticRegression(1.0, data_norm=2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe.fit(X, y)
    check = check_pipeline(pipe)
    report = privacy_report(pipe)
    uncovered = [f for f in check if f.problem == "not private"]
    assert bool(report.without_statement) != check.accepted
    assert len(report.uncovered) == len(uncovered)
    assert report.summary.conclusion[0].startswith("NOT COVERED") != check.accepted


@pytest.mark.parametrize("name", FORMATS)
def test_every_field_that_is_asked_for_is_there(report, name):
    """Unit, relation, trust model, coverage, mechanism, scale, sensitivity, and so on."""
    text = getattr(report, name)()
    statement, budget = report.statements[1], report.budgets[0]
    wanted = [
        "central: the curator who fits sees the data",
        "the public attributes of this fit",
        "scores on private rows",
        "add_remove",
        "all rows, once",
        statement.mechanism,
        f"{statement.noise_scale:g}"[:4],
        f"{statement.sensitivity:g}"[:4],
        statement.record,
        budget.head_hash,
        "data_norm",
        "random generator",
        "worst_case",
        "not how private",
        "NIST SP 800-226",
        "0.1.0",
    ]
    plain = " ".join(text.replace("\\_", "_").split())
    for words in wanted:
        assert words in plain, words


def test_json(report):
    values = json.loads(report.to_json())
    assert values == json.loads(json.dumps(report.to_dict()))
    assert values["guarantees"][1]["seeded"] is True
    assert values["budgets"][0]["head_hash"] == report.budgets[0].head_hash
    assert [audit.get("lower_bound") for audit in values["audits"]] == [0.5, None]


@pytest.mark.parametrize("name", FORMATS)
def test_no_row_is_told(report, name):
    X, _ = table()
    text = getattr(report, name)()
    shown = {f"{value:.6g}" for value in X.ravel()}
    # A number of fewer digits may be a rate of an audit.
    assert not any(value in text for value in shown if len(value) == 8)


class Tags(HTMLParser):
    """Names of the tags that a browser sees."""

    def __init__(self, text):
        super().__init__()
        self.seen, self.text = set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)

    def handle_data(self, data):
        self.text += data


def fragments(report, pipe, accountant):
    return report._repr_html_(), accountant.report()._repr_html_(), pipe[-1].privacy_._repr_html_()


def test_html_is_well_formed_and_escapes(report, pipe, accountant):
    page = report.to_html()
    assert page.startswith("<!DOCTYPE html>")
    ElementTree.fromstring(page.removeprefix("<!DOCTYPE html>\n"))
    allowed = set("div span style table thead tbody tr th td p h1 h2".split())
    for fragment in fragments(report, pipe, accountant):
        root = ElementTree.fromstring(fragment)
        assert {element.tag for element in root.iter()} <= allowed
        assert Tags(fragment).seen <= allowed
        assert not re.search(r"[\x00-\x09\x0b-\x1f\u202e]", fragment)
    seen = Tags(accountant.report()._repr_html_()).text
    assert NAME in seen and "<script>alert('1')</script>" in seen


def test_html_is_for_light_and_dark(report, pipe, accountant):
    for fragment in fragments(report, pipe, accountant):
        assert "prefers-color-scheme: dark" in fragment
        assert "--jp-content-font-color1" in fragment and "--jp-layout-color0" in fragment


def test_markdown_is_a_section_that_nothing_breaks(report):
    text = report.to_markdown(level=3)
    lines = text.splitlines()
    assert lines[0].startswith("### ") and not any(line.startswith("## ") for line in lines)
    bare = re.sub(r"\\.", "", text)
    assert "<" not in bare and "`" not in bare and "[" not in bare
    rows = [line for line in re.sub(r"\\\|", "", text).splitlines() if line.startswith("|")]
    assert [row.count("|") for row in rows] == [7] * 4 + [5] * 3 + [6] * 5


def test_what_is_said_without_ledger_and_without_attack():
    X, _ = table()
    report = privacy_report(DPMeanTransformer(0.5, bounds=(0, 1)).fit(X))
    assert report.budgets == report.audits == report.without_statement == ()
    text = " ".join(str(report).split())
    assert "the release is in no ledger" in text and "No attack was run" in text


def test_a_false_claim_is_said():
    X, _ = table()
    model = DPMeanTransformer(0.5, bounds=(0, 1)).fit(X)
    broken = EpsilonAudit(3.0, 0.5, 0.0, 0.95, "worst_case", "a mean", 100)
    for name in FORMATS:
        assert "VIOLATION" in getattr(privacy_report(model, audits=broken), name)()


@pytest.mark.filterwarnings("ignore::skdp.exceptions.RawDataWarning")
def test_parts_within_parts(accountant):
    X, y = table()
    columns = make_column_transformer(
        (DPStandardScaler(0.1, bounds=(0, 1)), [0]), (StandardScaler(), [1]), remainder="drop"
    )
    model = make_pipeline(columns, LogisticRegression()).fit(X, y)
    report = privacy_report(model)
    assert [s.estimator for s in report.statements] == ["DPStandardScaler"]
    found = [name.rpartition("__")[2].partition(" ")[0] for name in report.without_statement]
    assert found == ["standardscaler", "sparse_threshold", "Pipeline:"]
    assert "logisticregression" in report.without_statement[2]


def test_json_of_a_score_that_is_no_number():
    """The coefficient of determination of one row is not defined."""
    bound = dataclasses.replace(
        EpsilonAudit(0.5, 1.0, 1e-6, 0.95, "worst_case", "x", 100), lower_bound=float("nan")
    )
    X, y = table()
    report = privacy_report(DPLogisticRegression(1.0).fit(X, y), audits=[bound])
    assert json.loads(report.to_json())["audits"][0]["lower_bound"] is None


def test_a_search_that_is_not_private_is_named():
    X, y = table()
    search = GridSearchCV(DPLogisticRegression(1.0), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    found = privacy_report(search)
    assert found.without_statement == ("GridSearchCV",) and len(found.statements) == 1
    assert "GridSearchCV chooses by raw scores on private rows" in " ".join(found.to_text().split())


def test_two_data_sets_of_one_ledger(tmp_path):
    ledgers = [PrivacyAccountant(1.0, 0.0, ledger=tmp_path / "a.db", dataset=name) for name in "xy"]
    report = privacy_report(
        *ledgers, ledgers[0].report(), DPMeanTransformer(bounds=(0, 1)).fit(table()[0]).privacy_
    )
    assert [budget.dataset for budget in report.budgets] == ["x", "y"]
    assert len(report.statements) == 1


@pytest.mark.parametrize("sources", [(), (3,), (DPMeanTransformer(),)])
def test_what_cannot_be_reported(sources):
    with pytest.raises(ValueError):
        privacy_report(*sources)
    with pytest.raises(ValueError, match="audits"):
        privacy_report(PrivacyAccountant(1.0, 0.0), audits=[3])


def test_what_is_printed_first_is_the_promise_and_no_hash():
    accountant = PrivacyAccountant(1.0, 0.0)
    fitted = DPMeanTransformer(0.5, bounds=(0, 1), accountant=accountant).fit(np.eye(4))
    statement, report = fitted.privacy_, accountant.report()
    assert statement.record not in str(statement) and "noise scale" not in str(statement)
    assert statement.to_dict()["record"] == statement.record in statement._repr_html_()
    *above, last = str(report).splitlines()
    assert report.head_hash in last and "edited" in last
    assert not any(report.head_hash in line for line in above)


UNITS = {"row": {}, "person": {}, "group": {"max_rows": 2}}


def fitted_source(name, accountant):
    """A fitted model, split pipeline or search."""
    X, y = table()
    model = DPLogisticRegression(data_norm=2.0, accountant=accountant)
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression(data_norm=2.0))
    terms = {"epsilon": 1.0, "delta": 1e-6, "accountant": accountant}
    if name == "pipeline":
        is_by_person = accountant is not None and accountant.report().unit == "person"
        n_units = len(y) // 2 if is_by_person else len(y)
        model = split_budget(pipe, *terms.values(), n_samples=n_units, n_features=3)
    elif name == "search":
        params = {"data_norm": 2.0}
        model = DPGridSearchCV(DPLogisticRegression(**params), {"C": [0.1, 1.0]}, **terms)
    is_by_person = accountant is not None and accountant.report().unit == "person"
    groups = {"groups": np.arange(len(y)) // 2} if is_by_person else {}
    return model.fit(X, y, **groups)


@pytest.mark.quick_cases(every=18)
@pytest.mark.parametrize("name", ["model", "pipeline", "search"])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("unit", UNITS)
def test_the_first_page_agrees_with_the_ledger(name, relation, unit):
    accountant = PrivacyAccountant(
        9.0, 1e-3, relation=relation, unit=unit, dataset="clinic", **UNITS[unit]
    )
    accountant = accountant.as_user("ann", purpose="yearly report")
    accountant.charge(PureDP(0.25), label="before")
    source = fitted_source(name, accountant)
    report = privacy_report(source)
    facts = dict(report.summary.facts)
    first, *charges = accountant.charges
    (charge,) = charges
    spent, budget = accountant.report().spent, accountant.report()
    own = f"epsilon = {charge.epsilon:.6g}, delta = "
    own += f"{charge.delta:.6g}"
    assert facts["total of the model"].startswith(own + "; 1 charge")
    everything = f"epsilon = {spent[0]:.6g}, delta = {spent[1]:.6g}"
    assert facts["total of data set 'clinic'"].startswith(everything + "; 2 charges")
    assert spent[0] == pytest.approx(charge.epsilon + first.epsilon)
    assert facts["relation"].startswith(relation) and unit in facts["unit"]
    assert facts["unit"] == report.statements[0].unit or facts["unit"].startswith(unit)
    assert facts["who"] == "ann" and facts["why"] == "yearly report"
    assert facts["when"] == charge.time and budget.charges[0].time == first.time
    assert all(text in facts["assumed public"] for s in report.statements for text in s.public)
    sentences = report.summary.conclusion
    cost = f"{charge.epsilon:.6g}, {charge.delta:.6g}"
    assert f"({cost})-differentially private for each {unit}" in sentences[0]
    assert "times as likely" in sentences[1] and ("values" in sentences[1]) == (
        relation == "replace_one"
    )
    assert report.to_dict()["summary"]["who"] == "ann"
    html = report.to_html()
    first_page, _, rest = html.partition("Releases of this report")
    assert own in first_page and "skdp-first-page" in first_page and "@media print" in html
    assert "differentially private" in rest
    if name != "model":
        line = repr(source).splitlines()[-1]
        assert line.startswith(f"Privacy: {own} per {unit}")
        assert "data set 'clinic'" in line and charge.hash[:12] in line
        assert f"{own} per {unit}" in source._repr_html_()
        assert "sk-top-container" in source._repr_html_()


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("name", ["model", "pipeline", "search"])
def test_the_first_page_without_a_ledger(name):
    source = fitted_source(name, None)
    report = privacy_report(source)
    facts = dict(report.summary.facts)
    assert facts["total of the model"].endswith("in no ledger of this report")
    assert facts["total of the data set"].startswith("not known")
    assert facts["who"].startswith("not recorded") and "row" in facts["unit"]
    if name != "model":
        assert (
            repr(source).splitlines()[-1]
            == "Privacy: epsilon = 1, delta = 1e-06 per row; ledger: none"
        )


def test_the_first_page_warns():
    X, y = table()
    search = GridSearchCV(DPLogisticRegression(1.0), {"C": [0.1, 1.0]}, cv=2).fit(X, y)
    broken = EpsilonAudit(3.0, 0.5, 0.0, 0.95, "worst_case", "a mean", 100)
    words = " ".join(privacy_report(search, audits=[broken]).summary.conclusion)
    assert "NOT COVERED" in words and "VIOLATION" in words
    weak = DPMeanTransformer(50.0, bounds=(0, 1)).fit(X)
    assert "This guarantee is weak" in " ".join(privacy_report(weak).summary.conclusion)
    with pytest.warns(Warning, match="seed"):
        seeded = DPMeanTransformer(0.5, bounds=(0, 1), random_state=0).fit(X)
    assert "SEEDED" in " ".join(privacy_report(seeded).summary.conclusion)
    only_ledger = privacy_report(PrivacyAccountant(1.0, 0.0))
    assert "about the budget of a data set" in only_ledger.summary.conclusion[0]


def test_what_is_not_fitted_has_no_line():
    pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression(data_norm=2.0))
    assert "Privacy" not in repr(split_budget(pipe, 1.0, 1e-6, None))
    assert "Privacy" not in repr(DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}))


def test_no_text_says_less_than_was_spent():
    third = 1 / 3
    accountant = PrivacyAccountant(1.0, 0.5)
    terms = {"epsilon": third, "bounds": (0, 1), "accountant": accountant}
    model = DPMeanTransformer(**terms).fit(np.eye(4))
    accountant.charge(ApproximateDP(third, third), epsilon=third, delta=third)
    handle = Allowance(PlannedCharge("mean", PureDP(third), third), accountant.config, None)
    handle.plan_charge = accountant.charges[1]
    report, check = accountant.report(), check_pipeline(make_pipeline(DPMeanTransformer(**terms)))
    document = privacy_report(model)
    texts = [str(model.privacy_), model.privacy_._repr_html_(), str(check), check._repr_html_()]
    texts += [str(report), report._repr_html_(), str(document), document.to_markdown(), handle.plan]
    for text in texts:
        assert "0.333334" in text and "0.333333" not in text


def test_the_command_line_says_no_less_than_the_bound(capsys):
    terms = ["--sampling-rate", "1", "--noise-multiplier", "2", "--steps", "1", "--delta", "1e-5"]
    main(["epsilon", *terms])
    text = capsys.readouterr().out
    assert float(text.split()[2]) >= get_epsilon(Gaussian(2.0), 1e-5) - 1e-12


@pytest.mark.parametrize("classes", [None, [0, 1]])
def test_a_report_and_a_fit_judge_several_outputs_alike(classes):
    """Only a model that declares its labels never refuses an output with a single label."""
    X, y = table()
    model = DPLogisticRegression(1.0, data_norm=2.0, classes=classes)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outputs = MultiOutputClassifier(model).fit(X, np.column_stack([y, 1 - y]))
    raw = [w for w in caught if issubclass(w.category, RawDataWarning)]
    report = privacy_report(outputs)
    assert bool(report.uncovered) == bool(raw) == (classes is None)
    for sentence in report.uncovered:
        assert "reveal the label of one row; use classes=[...]" in sentence


def test_what_a_search_with_private_scores_tries_is_judged_too():
    X, y = table()
    pipe = make_pipeline(Normalizer(norm="max"), DPLogisticRegression(1.0, data_norm=2.0))
    scorer = make_dp_scorer("accuracy", epsilon=1.0)
    for step in (Normalizer(norm="max"), StandardScaler()):
        tried = {"normalizer": [step, "passthrough"]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search = GridSearchCV(pipe, tried, scoring=scorer, cv=KFold(2)).fit(X, y)
        is_raw = isinstance(step, StandardScaler)
        assert any("use DPStandardScaler" in s for s in privacy_report(search).uncovered) == is_raw
