import csv
import io
import json
import sqlite3
import subprocess
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from skdp import PrivacyAccountant, __version__
from skdp.__main__ import main
from skdp.accounting import Gaussian, PoissonSampled, PureDP, get_epsilon


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "budget.db"
    first = PrivacyAccountant(1.0, 1e-5, ledger=path)
    first.charge(PureDP(0.25), label="a mean")
    PrivacyAccountant(2.0, 0.0, ledger=path, dataset="clinic").charge(PureDP(0.5), label="a count")
    return path


def test_show(ledger, capsys):
    assert main(["ledger", "show", str(ledger)]) == 0
    text = capsys.readouterr().out
    assert "0.25 spent of 1" in text and "0.5 spent of 2" in text and "a count" in text
    assert main(["ledger", "show", str(ledger), "--json", "--dataset", "clinic"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert (report["dataset"], report["epsilon"]["spent"]) == ("clinic", 0.5)


def test_verify(ledger, capsys):
    assert main(["ledger", "verify", str(ledger), "--json"]) == 0
    verified = json.loads(capsys.readouterr().out)
    accountant = PrivacyAccountant(1.0, 1e-5, ledger=ledger)
    assert verified == {"head_hash": accountant.verify(), "records": 4}
    head = verified["head_hash"]
    accountant.charge(PureDP(0.1))
    assert main(["ledger", "verify", str(ledger), "--head", head]) == 0
    assert main(["ledger", "verify", str(ledger), "--head", "0" * 64]) == 1
    assert "replaced or cut" in capsys.readouterr().err


def test_an_edit_is_found(ledger, capsys):
    connection = sqlite3.connect(ledger)
    connection.execute("UPDATE records SET body = replace(body, '0.25', '0.05')")
    connection.commit()
    connection.close()
    assert main(["ledger", "verify", str(ledger)]) == 1
    assert "chain breaks" in capsys.readouterr().err
    assert main(["ledger", "show", str(ledger)]) == 1
    assert main(["ledger", "export", str(ledger)]) == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "body", ["{}", "[]", "null", '{"epsilon": -1.0, "delta": 0.0}', "{", b"\xff\x80"]
)
@pytest.mark.parametrize("sequence", [1, 2])
def test_a_record_that_cannot_be_read_is_no_wrong_argument(ledger, body, sequence, capsys):
    connection = sqlite3.connect(ledger)
    connection.execute("UPDATE records SET body = ? WHERE sequence = ?", (body, sequence))
    connection.commit()
    connection.close()
    for action in ("show", "verify", "export"):
        assert main(["ledger", action, str(ledger)]) == 1
        assert capsys.readouterr().err.startswith("skdp: ")


def test_export(ledger, capsys):
    assert main(["ledger", "export", str(ledger)]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [r["kind"] for r in records] == ["open", "charge", "open", "charge"]
    assert records[1]["body"]["label"] == "a mean"
    assert main(["ledger", "export", str(ledger), "--format", "csv", "--dataset", "clinic"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [r["dataset"] for r in rows] == ["clinic", "clinic"]
    assert json.loads(rows[1]["body"])["epsilon"] == 0.5


EVIL = "<script src='https://example.org/x.js'>&\""


@pytest.fixture
def shared(ledger, set_ledger_time):
    """A ledger that three users charged at different times, one of them with an ugly name."""
    accountant = PrivacyAccountant(1.0, 1e-5, ledger=ledger)
    accountant.sub_limit(EVIL, 0.5, 0.0, users=["ann", EVIL], reason="the board")
    names = ((1, "ann", "trial"), (2, EVIL, EVIL), (3, "ann", "report"))
    for month, user, purpose in names:
        time = f"2026-0{month}-01T00:00:00+00:00"
        set_ledger_time(time)
        accountant.as_user(user, purpose=purpose).charge(PureDP(0.125), label=f"{month} {EVIL}")
    return ledger


@pytest.mark.parametrize(
    ("options", "months"),
    [
        (["--user", "ann"], "13"),
        (["--user", EVIL], "2"),
        (["--purpose", "report"], "3"),
        (["--user", "ann", "--since", "2026-02-01"], "3"),
        (["--since", "2026-01-31T23:00:00-01:00", "--dataset", "default"], "a23"),
        (["--user", ""], "aa"),
        (["--user", "nobody"], ""),
    ],
)
def test_charges_are_chosen_by_user_purpose_and_time(shared, options, months, capsys):
    """The charge of each month begins with its number; two others, by nobody, with an a."""
    assert main(["ledger", "show", str(shared), "--json", *options]) == 0
    reports = json.loads(capsys.readouterr().out)
    assert "".join(spend["label"][0] for one in reports for spend in one["charges"]) == months
    # What was spent is that of all charges.
    assert reports[0]["epsilon"]["spent"] == 0.625
    assert main(["ledger", "show", str(shared), *options]) == 0
    assert "the amounts spent cover all charges" in " ".join(capsys.readouterr().out.split())
    assert main(["ledger", "export", str(shared), *options]) == 0
    records = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "".join(record["body"]["label"][0] for record in records) == months


def test_a_date_that_is_none_is_refused(shared, capsys):
    with pytest.raises(SystemExit) as end:
        main(["ledger", "show", str(shared), "--since", "yesterday"])
    assert end.value.code == 2 and "--since" in capsys.readouterr().err


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.names, self.text = set(), set(), ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data):
        self.text += data


def test_the_page_says_it_all_and_loads_nothing(shared, capsys):
    PrivacyAccountant(2.0, 0.0, ledger=shared, dataset="clinic").close(reason=EVIL)
    assert main(["ledger", "export", str(shared), "--format", "html"]) == 0
    text = capsys.readouterr().out
    ElementTree.fromstring(text.removeprefix("<!DOCTYPE html>\n"))
    page = Page(text)
    assert not page.tags & {"script", "img", "link", "iframe", "svg", "a", "form"}
    assert not {name for name in page.names if name.startswith("on")} | page.names & {"src", "href"}
    assert "url(" not in text and "@import" not in text
    head = PrivacyAccountant(1.0, 1e-5, ledger=shared).verify()
    for words in (EVIL, "2026-03", "user ann", "purpose trial", "user not named", "closed", head):
        assert words in page.text, words
    # Of the data set five eighths are spent, of the sub-limit three quarters; by time each charge.
    for share, words in (("62.5", "0.625, "), ("75.0", "0.375, 0"), ("50.0", "0.125")):
        assert f'width:{share}%"></span></span>&#160;{words}' in text, words
    assert "0.375, 0" in page.text and "0.125, 0" in page.text


def test_what_is_not_there_is_not_made(tmp_path, ledger, capsys):
    missing = tmp_path / "missing.db"
    for action in ("show", "verify", "export"):
        assert main(["ledger", action, str(missing)]) == 1
        assert not missing.exists()
    assert main(["ledger", "show", str(ledger), "--dataset", "nobody"]) == 1
    assert "no data set 'nobody'" in capsys.readouterr().err


def test_epsilon(capsys):
    options = "epsilon --sampling-rate .01 --noise-multiplier 1 --steps 1000 --delta 1e-5"
    event = PoissonSampled(0.01, Gaussian(1.0)) * 1000
    assert main(options.split()) == 0
    assert f"{get_epsilon(event, 1e-5):.6g}" in capsys.readouterr().out
    assert main([*options.split(), "--json", "--method", "rdp", "--relation", "replace_one"]) == 0
    priced = json.loads(capsys.readouterr().out)
    assert priced["epsilon"] == get_epsilon(event, 1e-5, method="rdp", relation="replace_one")
    assert priced["steps"] == 1000


@pytest.mark.parametrize(
    "options",
    [
        "epsilon --noise-multiplier -1 --delta 1e-5",
        "epsilon --noise-multiplier 1 --delta 2",
        "epsilon --noise-multiplier 1 --sampling-rate 2 --delta 1e-5",
        "ledger burn budget.db",
        "",
    ],
)
def test_bad_arguments_exit_with_2(options, capsys):
    with pytest.raises(SystemExit) as end:
        main(options.split())
    assert end.value.code == 2


@pytest.mark.thorough
def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "skdp", "ledger", "verify", "nowhere.db"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 1 and "skdp: " in run.stderr


@pytest.mark.parametrize(
    ("option", "words"), [("--version", __version__), ("--help", "exit codes")]
)
def test_it_says_what_it_is(option, words, capsys):
    with pytest.raises(SystemExit) as end:
        main([option])
    assert end.value.code == 0 and words in capsys.readouterr().out


MODELS = """
from sklearn.pipeline import make_pipeline
from skdp import DPGridSearchCV, DPLogisticRegression, DPStandardScaler
from skdp import PrivacyAccountant, tabular_pipeline


def natural():
    terms = {"epsilon": 0.5, "delta": 1e-6, "accountant": PrivacyAccountant(1.0, 1e-6)}
    return tabular_pipeline(DPLogisticRegression, **terms)


class Kept:
    plain = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression())
    search = DPGridSearchCV(DPLogisticRegression(), {"C": [0.1, 1.0]}, epsilon=2.0)
"""


@pytest.mark.parametrize(
    ("arguments", "epsilon"),
    [
        (["natural"], 0.5),
        (["natural", "--folds", "5"], 2.5),
        (["Kept.plain", "--rows", "1000", "--columns", "3", "--folds", "2"], 4.0),
        (["Kept.search"], 2.0),
    ],
)
def test_what_an_import_path_costs(arguments, epsilon, tmp_path, monkeypatch, capsys):
    (tmp_path / "priced_models.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    path, *more = arguments
    assert main(["price", f"priced_models:{path}", *more, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["epsilon"] == pytest.approx(epsilon)
    main(["price", f"priced_models:{path}", *more])
    printed = capsys.readouterr().out
    assert ("folds cost" in printed) == ("--folds" in more)
    if path == "natural" and more:
        assert "accountant.reserve(2.5, 5e-06) charges them as one" in printed


@pytest.mark.parametrize(
    "arguments",
    [
        ["json:nothing"],
        ["no_such_module:x"],
        ["json"],
        [".models:x"],
        ["..:x"],
        # These are no estimators, or functions that return none.
        ["json:dumps"],
        ["skdp:__version__"],
        ["os:getcwd"],
        ["skdp:DPRidge", "--folds", "0"],
        ["skdp:DPRidge", "--rows", "3", "--folds", "5"],
        ["skdp:DPRidge", "--rows", "9" * 400, "--folds", "2"],
    ],
)
def test_what_cannot_be_priced_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["price", *arguments])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage:")


@pytest.mark.parametrize(
    "text", ["", "now", "2020-13-01", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"]
)
@pytest.mark.parametrize("action", ["show", "export"])
def test_what_is_no_date_exits_with_2(action, text, ledger, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["ledger", action, str(ledger), "--since", text])
    assert stopped.value.code == 2
    assert f"argument --since: {text!r} is not a date or time" in capsys.readouterr().err


def test_a_data_set_is_no_formula_in_a_table(tmp_path, capsys):
    path = tmp_path / "budget.db"
    PrivacyAccountant(1.0, 0.0, ledger=path, dataset="=1+1")
    assert main(["ledger", "export", str(path), "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("1,'=1+1,open,")


@pytest.mark.parametrize("config", ["", "composition='zcdp'", "unit='group', max_rows=2"])
def test_folds_are_reserved_only_where_the_ledger_can_reserve(
    config, tmp_path, monkeypatch, capsys
):
    (tmp_path / "folded_models.py").write_text(
        "from skdp import DPRidge, PrivacyAccountant\n"
        f"accountant = PrivacyAccountant(9.0, 1e-4, {config})\n"
        "model = DPRidge(target_bounds=(0, 1), accountant=accountant)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "folded_models", raising=False)
    main(["price", "folded_models:model", "--rows", "90", "--columns", "2", "--folds", "2"])
    last = capsys.readouterr().out.rstrip().rpartition("\n")[2]
    accountant = sys.modules["folded_models"].accountant
    try:
        accountant.reserve(1.0, 1e-6)
        can_reserve = True
    except ValueError:
        can_reserve = False
    assert last.startswith("2 folds cost (2, ")
    assert ("reserve" in last) is can_reserve
    assert ("by basic composition; composition='zcdp' may give less" in last) is ("zcdp" in config)
