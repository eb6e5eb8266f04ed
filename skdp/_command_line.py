"""The command line: ``python -m skdp ledger ...``, ``... price ...`` and ``... epsilon ...``."""

import argparse
import csv
import json
import sys
from datetime import UTC, datetime
from functools import reduce
from importlib import import_module
from inspect import signature

from skdp._reports._document import PrivacyReport
from skdp._version import __version__
from skdp.accounting import Gaussian, PoissonSampled, get_epsilon
from skdp.accounting._bounds import METHODS
from skdp.exceptions import LedgerError
from skdp.ledger import PrivacyAccountant, chain_end
from skdp.ledger._accountant import ledger_reports
from skdp.ledger._registry import BUILT_IN_ADDRESSES
from skdp.ledger._view import ledger_records
from skdp.pipeline import check_pipeline
from skdp.utils._documents import count_of
from skdp.utils._rounding import format_rounded_up
from skdp.utils._validation import RELATIONS, check_integer, check_is_estimator

EXIT_CODES = """exit codes:
  0  success; the ledger's hash chain is intact
  1  the ledger cannot be read, or its hash chain is broken
  2  the arguments are invalid
"""


def main(arguments=None):
    """Run one command.

    Parameters
    ----------
    arguments : list of str, default=None
        None uses the arguments of the process.

    Returns
    -------
    int
        The exit code: 0, or 1 if the ledger cannot be used. argparse exits with 2.
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
        # A reader such as `head` closed the pipe. Closing avoids an error at exit.
        sys.stderr.close()
    return 0


def _parser():
    """Return the parser of all commands; each sets `run` to the function that runs it."""
    parser = argparse.ArgumentParser(
        prog="python -m skdp",
        description="Show a privacy ledger, or the cost of planned releases.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="command")
    ledger = commands.add_parser("ledger", help="read a ledger; it is never changed")
    actions = ledger.add_subparsers(required=True, metavar="action")
    _add_ledger_actions(actions)
    _add_price_command(commands)
    _add_epsilon_command(commands)
    return parser


def _add_command(group, name, run, description):
    """Add a command that `run` executes to a group of subparsers, and return its parser."""
    command = group.add_parser(name, help=description, description=description)
    command.set_defaults(run=run)
    return command


def _add_json_option(command):
    command.add_argument("--json", action="store_true", help="print JSON")


def _add_ledger_actions(actions):
    """Add the commands ``ledger show``, ``ledger verify`` and ``ledger export``."""
    show = _add_command(actions, "show", _show, "print the budget and charges of each data set")
    verify = _add_command(
        actions, "verify", _verify, "check the hash chain and print its last hash"
    )
    export = _add_command(
        actions, "export", _export, "print every record, or an HTML page of the budgets"
    )
    for command in (show, verify, export):
        command.add_argument("ledger", help=BUILT_IN_ADDRESSES)
    for command in (show, verify):
        _add_json_option(command)
    for command in (show, export):
        command.add_argument("--dataset", help="only this data set")
        command.add_argument("--user", help="only charges of this user")
        command.add_argument("--purpose", help="only charges for this purpose")
        command.add_argument(
            "--since", type=_date, help="only charges since this date or time, UTC"
        )
    verify.add_argument("--head", help="fail unless the chain contains this hash")
    export.add_argument("--format", choices=("jsonl", "csv", "html"), default="jsonl")


def _add_price_command(commands):
    """Add the command ``price``, which plans the fits of an estimator without data."""
    price = _add_command(
        commands,
        "price",
        _price,
        "print the cost of a fit, search or cross-validation without charging it",
    )
    _add_json_option(price)
    path_help = "an estimator, or a function without arguments that returns one"
    price.add_argument("path", metavar="module:object", help=path_help)
    price.add_argument("--rows", type=int, help="number of rows of the table")
    price.add_argument("--columns", type=int, help="number of columns of the table")
    price.add_argument("--folds", type=int, help="number of folds of a cross-validation")


def _add_epsilon_command(commands):
    """Add the command ``epsilon``, for DP-SGD in any library."""
    epsilon = _add_command(
        commands,
        "epsilon",
        _epsilon,
        "print the epsilon of Gaussian noise steps on Poisson-sampled batches",
    )
    _add_json_option(epsilon)
    epsilon.add_argument(
        "--noise-multiplier",
        type=float,
        required=True,
        help="standard deviation of the noise divided by the clipping norm",
    )
    epsilon.add_argument(
        "--sampling-rate",
        type=float,
        default=1.0,
        help="sampling probability of a row; 1 is the full batch",
    )
    epsilon.add_argument("--steps", type=int, default=1)
    epsilon.add_argument("--delta", type=float, required=True)
    epsilon.add_argument("--relation", choices=RELATIONS, default="add_remove")
    epsilon.add_argument("--method", choices=METHODS, default="auto")


def _date(text):
    """Return a date or time in ISO format as a UTC time, as ledgers store it."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a date or time, such as 2026-01-31 or 2026-01-31T12:00:00+00:00"
        ) from None


def _reports(options):
    """Return the reports of the selected data sets, with the selected charges."""
    reports = ledger_reports(options.ledger, options.dataset)
    return [
        report.select(user=options.user, purpose=options.purpose, since=options.since)
        for report in reports
    ]


def _show(options):
    """Print the budget report of each data set."""
    reports = _reports(options)
    values = [report.to_dict() for report in reports]
    _print(options, values, "\n\n".join(map(str, reports)), indent=2)


def _verify(options):
    """Print the number of records and the last hash, after the hash chain was checked."""
    rows = [record.row for record in ledger_records(options.ledger, head=options.head)]
    n_records, head_hash = chain_end(rows)
    text = (
        f"{count_of(n_records, 'record')}, the hash chain is intact; its last hash is\n{head_hash}"
    )
    _print(options, {"head_hash": head_hash, "records": n_records}, text)


def _export(options):
    """Print the records of a ledger as CSV or JSON lines, or its budgets as an HTML page.

    A selection by user, purpose or time prints only charges and reuses: records that open or close
    a data set, or change a limit, are left out.
    """
    if options.format == "html":
        page = PrivacyReport("Privacy ledger", (), tuple(_reports(options)), (), ())
        print(page.to_html(), end="")
        return
    rows = [vars(record) for record in ledger_records(options.ledger, options.dataset)]
    if {options.user, options.purpose, options.since} != {None}:
        selected = set()
        for report in _reports(options):
            selected.update(entry.sequence for entry in (*report.charges, *report.reuses))
        rows = [row for row in rows if row["sequence"] in selected]
    if options.format == "jsonl":
        for row in rows:
            print(json.dumps(row, sort_keys=True))
        return
    writer = csv.DictWriter(sys.stdout, ["sequence", "dataset", "kind", "body", "hash"])
    writer.writeheader()
    for row in rows:
        name = row["dataset"]
        if name.startswith(("=", "+", "-", "@")):
            # A spreadsheet would evaluate the cell as a formula.
            name = "'" + name
        writer.writerow(row | {"dataset": name, "body": json.dumps(row["body"], sort_keys=True)})


def _imported(path):
    """Return the estimator at ``module:object``, or the one that the function there returns."""
    module, _, name = path.partition(":")
    try:
        if module.startswith("."):
            raise ImportError("a relative name has no package here")
        estimator = reduce(getattr, name.split("."), import_module(module))
    except (AttributeError, ImportError, ValueError) as error:
        raise ValueError(
            f"{path!r} cannot be imported: {error}. Write module:object, for example "
            "mypackage.models:pipeline"
        ) from None
    if callable(estimator):
        try:
            signature(estimator).bind()
        except (TypeError, ValueError):
            raise ValueError(
                f"{path!r} must be an estimator, or a function without required arguments that "
                "returns one"
            ) from None
        estimator = estimator()
    check_is_estimator(estimator, path)
    return estimator


def _price(options):
    """Print the privacy cost of one fit of a pipeline, or of a fit per fold."""
    estimator = _imported(options.path)
    n_folds = 1
    if options.folds is not None:
        n_folds = check_integer(options.folds, "--folds", 1)
    n_rows = options.rows
    if n_rows is not None and n_folds > 1:
        # The smallest training set: all rows except the largest fold, in whole numbers.
        n_rows = check_integer(n_rows, "--rows", n_folds)
        n_rows -= -(-n_rows // n_folds)
    checked = check_pipeline(estimator, n_samples=n_rows, n_features=options.columns)
    total = {"epsilon": n_folds * checked.epsilon, "delta": n_folds * checked.delta}
    text = str(checked)
    if n_folds > 1:
        cost = format_rounded_up(total["epsilon"], total["delta"])
        rules = _composition_rules(estimator)
        text += f"\n\n{n_folds} folds cost "
        if not checked.exact:
            text += f"at least ({cost})"
        elif rules:
            text += f"({cost}) by basic composition; composition={', '.join(rules)} may give less"
        elif _protects_groups(estimator):
            text += f"({cost})"
        else:
            text += f"({cost}): accountant.reserve({cost}) charges them as one"
    _print(options, checked.to_dict() | {"folds": n_folds, "total": total}, text)


def _ledger_configs(estimator):
    """Return the configurations of the ledgers that the steps of an estimator charge."""
    values = estimator.get_params(deep=True).values()
    return [value.config for value in values if isinstance(value, PrivacyAccountant)]


def _composition_rules(estimator):
    """Return the names of the composition rules, other than basic, of an estimator's ledgers."""
    rules = dict.fromkeys(config.composition for config in _ledger_configs(estimator))
    return [repr(rule) for rule in rules if rule != "basic"]


def _protects_groups(estimator):
    """Return True if a ledger of an estimator protects groups of rows, and can reserve nothing."""
    return any(config.max_rows > 1 for config in _ledger_configs(estimator))


def _epsilon(options):
    """Print the epsilon of steps with Poisson-sampled rows and Gaussian noise, as of DP-SGD."""
    step = PoissonSampled(options.sampling_rate, Gaussian(options.noise_multiplier))
    epsilon = get_epsilon(
        step * options.steps, delta=options.delta, relation=options.relation, method=options.method
    )
    values = {
        "epsilon": epsilon,
        "sampling_rate": options.sampling_rate,
        "noise_multiplier": options.noise_multiplier,
        "steps": options.steps,
        "delta": options.delta,
        "relation": options.relation,
        "method": options.method,
    }
    text = (
        f"epsilon = {format_rounded_up(epsilon)} at delta = {options.delta:g} ({options.relation})"
    )
    _print(options, values, text)


def _print(options, values, text, indent=None):
    """Print the values as JSON with the option `--json`, or else the text."""
    if options.json:
        text = json.dumps(values, indent=indent)
    print(text)
