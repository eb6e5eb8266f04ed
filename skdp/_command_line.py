"""The command line: ``python -m skdp ledger ...``, ``... price ...`` and ``... epsilon ...``."""

import argparse
import csv
import json
import math
import sys
from datetime import UTC, datetime
from functools import reduce
from importlib import import_module

from skdp._privacy_report import PrivacyReport
from skdp._version import __version__
from skdp.accounting import Gaussian, PoissonSampled, get_epsilon
from skdp.accounting._bounds import METHODS
from skdp.exceptions import LedgerError
from skdp.ledger import chain_end
from skdp.ledger._accountant import ledger_reports
from skdp.ledger._view import ledger_records
from skdp.pipeline import check_pipeline
from skdp.utils._rounding import format_rounded_up
from skdp.utils._validation import RELATIONS, check_integer

EXIT_CODES = """exit codes:
  0  done; the ledger's chain is whole
  1  the ledger cannot be used or its chain is broken
  2  the arguments are wrong
"""


def main(arguments=None):
    """Run one command.

    Parameters
    ----------
    arguments : list of str, default=None
        None takes the process's own.

    Returns
    -------
    int
        The exit code: 0, or 1 where the ledger cannot be used; argparse exits with 2.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        options.run(options)
    except LedgerError as error:
        print(f"skdp: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    except BrokenPipeError:
        # Whoever read the output has seen enough of it.
        sys.stderr.close()
    return 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m skdp",
        description="Look at a privacy ledger; price a schedule of releases.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command")
    ledger = commands.add_parser("ledger", help="look at a ledger; nothing is ever changed")
    actions = ledger.add_subparsers(required=True, metavar="action")

    def add(group, name, run, words):
        command = group.add_parser(name, help=words, description=words)
        command.set_defaults(run=run)
        if group is actions:
            command.add_argument("ledger", help="a file, or a postgresql:// address")
        if run is not _export:
            command.add_argument("--json", action="store_true", help="print JSON")
        return command

    show = add(actions, "show", _show, "budget and charges of each data set")
    verify = add(actions, "verify", _verify, "check the hash chain, print the last hash")
    export = add(actions, "export", _export, "every record, or a page of the budgets (html)")
    words = "what a fit, a search or a cross-validation will cost; nothing is fitted or spent"
    pipeline = add(commands, "price", _price, words)
    words = "what noisy Gaussian steps cost, each on a Poisson-sampled batch"
    price = add(commands, "epsilon", _epsilon, words)
    pipeline.add_argument("path", metavar="module:object", help="an object, or a function of none")
    pipeline.add_argument("--rows", type=int, help="of the table")
    pipeline.add_argument("--columns", type=int, help="likewise")
    pipeline.add_argument("--folds", type=int, help="of a cross-validation with a fit in each")
    for command in (show, export):
        command.add_argument("--dataset", help="this data set alone")
        command.add_argument("--user", help="charges of this user alone")
        command.add_argument("--purpose", help="charges for this purpose alone")
        command.add_argument("--since", type=_date, help="charges from this date or time on, UTC")
    verify.add_argument("--head", help="fail unless the chain still holds this hash")
    export.add_argument("--format", choices=("jsonl", "csv", "html"), default="jsonl")
    price.add_argument("--noise-multiplier", type=float, required=True, help="sigma over the clip")
    price.add_argument("--sampling-rate", type=float, default=1.0, help="1 is the full batch")
    price.add_argument("--steps", type=int, default=1)
    price.add_argument("--delta", type=float, required=True)
    price.add_argument("--relation", choices=RELATIONS, default="add_remove")
    price.add_argument("--method", choices=METHODS, default="auto")
    return parser


def _date(text):
    moment = datetime.fromisoformat(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).isoformat(timespec="seconds")


def _reports(options):
    asked = {name: getattr(options, name) for name in ("user", "purpose", "since")}
    return [one.select(**asked) for one in ledger_reports(options.ledger, options.dataset)]


def _show(options):
    reports = _reports(options)
    values = [report.to_dict() for report in reports]
    _print(options, values, "\n\n".join(map(str, reports)), indent=2)


def _verify(options):
    rows = [record.row for record in ledger_records(options.ledger, head=options.head)]
    records, head = chain_end(rows)
    words = f"{records} records, the chain is whole; its last hash is\n{head}"
    _print(options, {"head_hash": head, "records": records}, words)


def _export(options):
    if options.format == "html":
        page = PrivacyReport("Privacy ledger", (), tuple(_reports(options)), (), ())
        print(page.to_html(), end="")
        return
    rows = [vars(record) for record in ledger_records(options.ledger, options.dataset)]
    if {options.user, options.purpose, options.since} != {None}:
        entries = (entry for one in _reports(options) for entry in (*one.charges, *one.reuses))
        kept = {entry.sequence for entry in entries}
        rows = [row for row in rows if row["sequence"] in kept]
    if options.format == "jsonl":
        for row in rows:
            print(json.dumps(row, sort_keys=True))
        return
    writer = csv.DictWriter(sys.stdout, ["sequence", "dataset", "kind", "body", "hash"])
    writer.writeheader()
    for row in rows:
        # A spreadsheet would compute what begins so.
        name = "'" * row["dataset"].startswith(("=", "+", "-", "@")) + row["dataset"]
        writer.writerow(row | {"dataset": name, "body": json.dumps(row["body"], sort_keys=True)})


def _price(options):
    module, _, name = options.path.partition(":")
    try:
        found = reduce(getattr, name.split("."), import_module(module))
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(f"{options.path!r} is no module:object: {error}") from None
    folds = check_integer(1 if options.folds is None else options.folds, "--folds", 1)
    rows = options.rows
    if rows is not None and folds > 1:
        rows -= math.ceil(rows / folds)
    found = found() if callable(found) else found
    checked = check_pipeline(found, n_samples=rows, n_features=options.columns)
    price = {n: folds * getattr(checked, n) for n in ("epsilon", "delta")}
    least = "" if checked.exact else "at least "
    words = str(checked)
    if folds > 1:
        amounts = format_rounded_up(*price.values())
        words += f"\n\n{folds} folds cost {least}({amounts}): "
        words += f"accountant.reserve({amounts}) books them"
    _print(options, checked.to_dict() | {"folds": folds, "total": price}, words)


def _epsilon(options):
    step = PoissonSampled(options.sampling_rate, Gaussian(options.noise_multiplier))
    terms = {"delta": options.delta, "relation": options.relation, "method": options.method}
    value = get_epsilon(step * options.steps, **terms)
    names = ("sampling_rate", "noise_multiplier", "steps")
    values = {"epsilon": value} | {name: getattr(options, name) for name in names} | terms
    epsilon = format_rounded_up(value)
    words = f"epsilon = {epsilon} at delta = {options.delta:g} ({options.relation})"
    _print(options, values, words)


def _print(options, values, words, **layout):
    print(json.dumps(values, **layout) if options.json else words)
