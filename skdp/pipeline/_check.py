"""Check of a pipeline: steps that are not private, redundant charges, and the cost."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.preprocessing import FunctionTransformer

from skdp._data._forms import TableForm
from skdp._fitting._raw_parts import find_raw_settings
from skdp._reports._contents import register_uncovered_reader
from skdp._tools._entries import REASONS
from skdp._tools._functions import is_elementwise, refers_to_table
from skdp._tools._registry import known_caller
from skdp._tools._scores_and_folds import folds_problem, has_private_scores
from skdp.base import terms_of
from skdp.pipeline._instances import is_estimator
from skdp.pipeline._known import (
    candidates_of,
    find_raw_steps,
    inner_parts,
    join_names,
    row_wise_remedy,
)
from skdp.pipeline._parameters import PublicTable, find_refusals
from skdp.pipeline._prices import Cost, paid_twice, price_steps, total_price
from skdp.pipeline._steps import (
    fails_by_values,
    find_steps,
    holds_private,
    steps_of_search,
    unaccepted,
)
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._rounding import format_rounded_up
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue

# Name of the finding for each kind of step.
PROBLEMS = {
    "local": "local",
    "opaque": "not checkable",
    "learns": "not private",
    "not_row_wise": "not row-wise",
    "resamples": "resampled rows",
    "calibrates": "raw last stage",
    "cross_validates": "raw scores",
    "wrapper": "not checkable",
    "unknown": "unknown",
}
# Kinds of steps that fit other estimators.
NESTING = ("cross_validates", "wrapper", "resamples", "calibrates", "unknown")
# Kinds of steps for which a table of callers judges how they fit private estimators.
FITTING = ("cross_validates", "wrapper", "calibrates")
PUBLIC = ", or name it in public_steps if what it learns is public"
PRIVATE_PARTS = "; public_steps cannot excuse it, because it contains private steps"
PUBLIC_PARTS = "name it and the steps inside it in public_steps if what they learn is public"
UNPLANNED = (
    "no plan of fits can hold it and public_steps cannot excuse it: give the private estimators "
    "inside it their epsilon and accountant, and fit it without split_budget, so that each of its "
    "fits is charged"
)
NULLS = (
    "one null in an integer column of polars or Arrow turns all its cells into floats before the "
    "function is called: use validate=True, which refuses nulls, or float columns"
)


@dataclass(frozen=True)
class Finding(FrozenValue):
    """A problem in a pipeline, or a fact that its user should know.

    Parameters
    ----------
    step : str
        Name of the step.
    problem : str
        "not private", "unknown", "resampled rows", "raw last stage", "raw scores", "stratified
        folds", "folds by values", "folds not by person", "paid twice", "local", "not checkable",
        "not row-wise", "declared public", "no accountant", "several accountants", "may fail after
        the charge", "wrong parameter" (a fit would raise an error), or "assumes of the table" (an
        assumption about the table on which the result depends).
    message : str
        Description and remedy.
    """

    step: str
    problem: str
    message: str

    def __str__(self):
        return f"{self.step}: {self.problem}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class StepCost(Cost):
    """A step of a pipeline and the cost of one fit.

    Parameters
    ----------
    step : str
        Name of the step.
    estimator : str
        Name of its class, or "passthrough" or "drop".
    kind : str
        Kind of the step as in `step_kind`.
    reason : str
        Meaning of the kind.
    columns : str
        Description of the columns that the step receives; empty for all.
    **cost
        Fields of `Cost`.
    """

    step: str
    estimator: str
    kind: str
    reason: str
    columns: str


@dataclass(frozen=True)
class PipelineCheck(PrintedDocument, FrozenValue):
    """Result of `check_pipeline`. Iteration yields the findings; printing shows everything.

    Parameters
    ----------
    findings : tuple of Finding
        Problems, and facts worth knowing.
    steps : tuple of StepCost
        All steps, in the order in which they are fitted.
    epsilon, delta : float
        Cost of a fit if its steps are charged one by one, which is the sum over the steps.
    joint_epsilon : float
        Cost of the same releases, at the same delta, if they are charged as one plan.
    accepted : bool
        True if every step is private, learns nothing or is declared public.
    exact : bool
        True if the cost is exact. Otherwise it is a lower limit, and the text says "at least".
    """

    findings: tuple
    steps: tuple
    epsilon: float
    delta: float
    joint_epsilon: float
    accepted: bool
    exact: bool = True

    def __iter__(self):
        return iter(self.findings)

    def to_dict(self):
        """Return the result as JSON values.

        Returns
        -------
        dict
        """
        steps = [vars(s) | {"event": s.event and s.event.to_json()} for s in self.steps]
        findings = [asdict(finding) for finding in self.findings]
        return vars(self) | {"findings": findings, "steps": steps}

    def _rows(self):
        """Yield the cells of the printed table, for each step: its name, estimator, kind and cost.

        The number of fits is unknown if the number found is 0 and not exact ("x ?").
        """
        for step in self.steps:
            columns_text = ""
            if step.columns:
                columns_text = f" on {step.columns}"
            price = "-"
            if step.event:
                price = f"({format_rounded_up(step.epsilon, step.delta)})"
            unknown = step.fits == 0 and not step.exact
            at_least = ""
            times = ""
            if step.event and not unknown:
                if not step.exact:
                    at_least = "at least "
                if not step.fits:
                    times = " x 0"
            elif step.event:
                times = " x ?"
            yield step.step, step.estimator + columns_text, step.kind, at_least + price + times

    def _totals(self):
        """Return the sentence on the cost of one fit."""
        is_free = self.exact and not any(step.event for step in self.steps)
        if is_free and self.accepted:
            return "no step makes a private release, so a fit charges nothing"
        if is_free:
            return "no step is private: a fit charges nothing, and the rows are not protected"
        at_least = ""
        if not self.exact:
            at_least = "at least "
        price = f"({format_rounded_up(self.epsilon, self.delta)})"
        if self.joint_epsilon < self.epsilon:
            joint = f"({format_rounded_up(self.joint_epsilon, self.delta)})"
            price = f"{price} step by step, {joint} as one plan"
        return f"one fit costs {at_least}{price}"

    def section(self):
        """Return the steps, their cost and the findings as a section of a printed document.

        Returns
        -------
        Section
        """
        table = (("step", "estimator", "kind", "epsilon, delta"), *self._rows())
        notes = (self._totals(), *map(str, self.findings or ["no findings"]))
        return Section("Steps of the pipeline", tables=(table,), notes=notes)


def check_pipeline(
    pipe: BaseEstimator,
    *,
    n_samples: int | None = None,
    n_features: int | None = None,
    public_steps: Sequence[str] = (),
) -> PipelineCheck:
    """Report the steps of a pipeline that are not private, redundant charges, and the cost.

    Nothing is fitted to data.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, a search over
        one, or one estimator.
    n_samples, n_features : int, default=None
        Shape of the table. The cost of some steps depends on it.
    public_steps : sequence of str, default=()
        Names of steps that learn from data and are declared public.

    Returns
    -------
    PipelineCheck

    Raises
    ------
    ValueError
        If a name in `public_steps` is not a step, a private step's epsilon is out of range, or a
        selected column is not in a table with `n_features` columns.

    Notes
    -----
    The kinds of steps are as in `step_kind`. A step is accepted if its exact class and parameters
    were verified; all others are refused. Further assumptions about the table are reported as
    findings, with one exception: a sparse matrix is assumed to have at most one entry per cell,
    because other rows determine the order in which duplicate entries are added. Frozen, public and
    user-defined steps raise their errors when they are fitted, which may be after a charge. The
    following are assumed to be public: the table's shape, its column names, the dtypes of its
    container (which a `make_column_selector` uses to select columns), `public_steps` and
    ``__skdp_kind__``.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skdp import DPLogisticRegression
    >>> from skdp.pipeline import check_pipeline
    >>> result = check_pipeline(make_pipeline(StandardScaler(), DPLogisticRegression()))
    >>> result.accepted
    False
    >>> for finding in result:
    ...     print(finding.step, "|", finding.problem)
    standardscaler | not private
    dplogisticregression | no accountant
    """
    if n_samples is not None:
        n_samples = check_integer(n_samples, "n_samples", 1)
    steps = list(_look_inside(pipe, "", n_features))
    refused_steps = unaccepted(steps, public_steps)
    findings = [finding for step in steps for finding in _of_cross_validator(step, steps)]
    findings += [_finding(step) for step in refused_steps if step.kind != "cross_validates"]
    findings += [finding for step in refused_steps for finding in _raw_candidates(step)]
    findings += [
        Finding(step.title, "declared public", f"{REASONS[step.kind]}, which you allow")
        for step in unaccepted(steps)
        if step not in refused_steps
    ]
    table = PublicTable(form=TableForm(n_rows=n_samples, n_columns=n_features))
    findings += [
        Finding(step.title, "wrong parameter", str(error))
        for step, error in find_refusals(pipe, table)
        if step.kind in ("private", "stateless", "declared", "container")
    ]
    findings += [Finding(s.title, "paid twice", message) for s, message in paid_twice(steps)]
    findings += _by_values(steps)
    priced = [step for step in steps if step.kind == "private"]
    findings += _accountants(priced)
    prices = price_steps(priced, n_samples)
    total = total_price(prices)
    has_known_charges = not any(_may_charge(step) for step in steps)
    return PipelineCheck(
        findings=tuple(dict.fromkeys(findings)),
        steps=tuple(_cost(step, prices.get(step.name)) for step in steps),
        accepted=not refused_steps,
        epsilon=total.epsilon,
        delta=total.delta,
        joint_epsilon=total.joint_epsilon,
        exact=has_known_charges and total.exact,
    )


def describe_uncovered_steps(estimator):
    """Return the steps that learn from rows without a charge, with a description of each.

    Parameters
    ----------
    estimator : estimator
        A pipeline, a search or any other estimator without a privacy statement.

    Returns
    -------
    list of (str, str)
        Name of each step ("" for the estimator itself), and a sentence with a remedy. Steps that
        the pipeline's plan declares public are included, because no guarantee covers them.
    """
    public_steps = getattr(estimator, "_public_steps", ())
    steps = list(_look_inside(estimator, "", None))
    declared_public = [s for s in unaccepted(steps) if s not in unaccepted(steps, public_steps)]
    described_steps = []
    for step in unaccepted(steps):
        if step.kind in ("wrapper", "cross_validates"):
            described_steps += [(f.step, f.message) for f in _raw_candidates(step)]
        problem = None
        if step.kind in FITTING and is_estimator(step.estimator):
            # Whether a plan could contain the step is irrelevant to its privacy, which the fit has
            # checked.
            problem = _problem_of_fit(step.estimator)
        if problem == "" or (problem is None and step.kind == "wrapper"):
            continue
        if step.kind == "local":
            # Each of its reports is charged.
            continue
        class_name = type(step.estimator).__name__
        name = step.name
        if is_estimator(step.estimator):
            name = f"{step.name} ({class_name})"
        text = "; ".join(filter(None, (REASONS[step.kind], step.advice)))
        if step.kind == "wrapper":
            text = problem
        if step in declared_public:
            text = f"{REASONS[step.kind]}; the analyst declared what it learns public"
        if not step.name:
            name = ""
        described_steps.append((name, text))
    return described_steps


def _problem_of_fit(estimator):
    """Return the problem of a wrapper's fit, as a `RawDataWarning` describes it.

    The result is "" if there is no problem, and None for a class that is not in the table of
    callers.
    """
    rows = (known_caller(cls.__module__, "fit") for cls in type(estimator).__mro__)
    row = next(filter(None, rows), None)
    if row is None:
        return None
    # Only the number of columns of the targets is read.
    n_targets = len(getattr(estimator, "estimators_", ())) or 1
    if getattr(estimator, "multilabel_", True) is False:
        n_targets = 1
    problem, _ = row.problem_of_part(estimator, np.empty((0, n_targets)))
    if problem:
        return "; ".join(filter(None, (problem, row.instead)))
    return ""


# Privacy reports name these steps, but must not import this package.
register_uncovered_reader(describe_uncovered_steps)


def _may_charge(step):
    """Return True if a step may charge unpredictably, by inner fits or at each transform."""
    return step.kind == "local" or step.kind in NESTING and step.kind != "wrapper"


def _look_inside(pipe, prefix, n_features, before=()):
    """Yield all steps, including steps in wrappers, which may be fitted any number of times."""
    for step in find_steps(pipe, n_features, prefix, before):
        yield step
        if step.kind in NESTING and is_estimator(step.estimator):
            width = None
            if step.kind == "cross_validates":
                width = step.n_features
            for name, inner in inner_parts(step.estimator):
                inside = _look_inside(inner, step.parameter(name), width, step.before)
                yield from (replace(part, fits=None) for part in inside)


def _finding(step):
    """Return the finding on a step that is not accepted, with a remedy."""
    name = "this choice"
    if is_estimator(step.estimator):
        name = type(step.estimator).__name__
    message = f"{name} {REASONS[step.kind]}; {step.advice}"
    if step.kind == "local":
        message = step.advice
    elif step.kind == "not_row_wise":
        message = f"{name} {REASONS['not_row_wise']}, because of the person as the unit or of "
        message += f"count='noisy'; {row_wise_remedy(step.estimator)}"
    elif step.kind == "wrapper":
        message = f"{name} {REASONS['wrapper']}; {UNPLANNED}"
        if not holds_private(step.estimator):
            message = f"{name} {REASONS['wrapper']}; {PUBLIC_PARTS}"
    elif step.kind in ("learns", "unknown") and is_estimator(step.estimator):
        excuse = PUBLIC
        if holds_private(step.estimator):
            excuse = PRIVATE_PARTS
        message += excuse
    return Finding(step.title, PROBLEMS[step.kind], message)


def _raw_candidates(step):
    """Yield the findings on estimators that a search tries as replacements for others."""
    if not is_estimator(step.estimator):
        return
    for name, candidate in candidates_of(step.estimator):
        for raw in find_raw_steps(candidate):
            title = join_names(step.name, name, raw.name)
            class_name = type(raw.estimator).__name__
            message = f"{class_name}, which the search tries, {REASONS[raw.kind]}; {raw.advice}"
            yield Finding(title, PROBLEMS[raw.kind], message)
    for text in find_raw_settings(step.estimator):
        yield Finding(
            step.title, PROBLEMS["learns"], f"a candidate of the search is not private: {text}"
        )


def _of_cross_validator(step, steps):
    """Yield the findings on the scores, the folds and the candidates of a cross-validating step.

    `steps` are all steps of the pipeline, including those inside this one.
    """
    if step.kind != "cross_validates":
        return
    problems = [*_of_scores(step), *_of_folds(step, steps)]
    yield from problems or [Finding(step.title, "not checkable", UNPLANNED)]
    private = [other for other in steps if step.holds(other) and other.kind == "private"]
    yield from _paid_by_candidates(step, private)


def _of_scores(step):
    """Yield the findings on the scores of a search, and on the functions that choose by them."""
    scoring = step.params.get("scoring")
    if not has_private_scores(scoring):
        message = f"its scores are raw, and so is any choice based on them; {step.advice}"
        yield Finding(step.title, "raw scores", message)
    for name in ("refit", "importance_getter"):
        if refers_to_table(step.params.get(name)):
            message = (
                f"its {name} may read rows, because it refers to a table, a column or a fitted "
                "model; use one that reads only the scores or the model that it is given"
            )
            yield Finding(step.title, "not private", message)


def _of_folds(step, steps):
    """Yield the finding on folds that depend on values, or on how many rows others have."""
    cv = step.params.get("cv")
    inner = step.params.get("estimator", step.estimator)
    private = [other for other in steps if step.holds(other) and other.kind == "private"]
    by_default = (cv is None or isinstance(cv, int)) and is_classifier(inner)
    by_person = any(terms_of(other.params["accountant"]).unit == "person" for other in private)
    if by_person and type(cv).__name__ != "PersonKFold":
        message = "a person's rows move other rows, or are in several folds; use cv=PersonKFold(k)"
        yield Finding(step.title, "folds not by person", message)
    elif by_default or "Stratified" in type(cv).__name__:
        message = (
            "labels determine which rows are in a fold, so the sum of the charges is not a "
            "guarantee; use cv=KFold(k, shuffle=True, random_state=0)"
        )
        yield Finding(step.title, "stratified folds", message)
    elif folds_problem(cv, inner):
        message = (
            f"it {folds_problem(cv, inner)}, so the sum of the charges is not a guarantee; use "
            "cv=KFold(k, shuffle=True, random_state=0)"
        )
        yield Finding(step.title, "folds by values", message)


def _paid_by_candidates(step, private):
    """Yield the findings on private transformers that a search fits again without changing them."""
    grid = step.params.get("param_grid", step.params.get("param_distributions"))
    if grid is None:
        return
    if not isinstance(grid, list):
        grid = [grid]
    tried = " ".join(name for params in grid for name in params)
    for inside in private:
        name = inside.name.removeprefix(step.name and f"{step.name}__").partition("__")[2]
        if hasattr(inside.estimator, "transform") and name not in tried:
            message = (
                "the search fits and charges it again for every candidate and fold, but varies "
                "none of its parameters: fit it once, before the search"
            )
            yield Finding(inside.title, "paid twice", message)


def _by_values(steps):
    """Yield findings on assumptions about values, and on failures after a charge."""
    charged = False
    for step in steps:
        part = step.estimator
        if step.kind == "frozen":
            part = step.estimator.estimator
        if _is_dtype_dependent(part):
            yield Finding(step.title, "assumes of the table", NULLS)
        if charged and fails_by_values(step):
            message = "earlier charges are kept if its fit raises an error on "
            message += fails_by_values(step)
            yield Finding(step.title, "may fail after the charge", message)
        charged = charged or step.kind in ("private", "local")
        for inside in steps_of_search(step):
            yield from _by_values(inside)


def _is_dtype_dependent(estimator):
    """Return True if a single null may change the dtype of the cells that a function receives.

    A function declared to be row-wise is trusted.
    """
    if not isinstance(estimator, FunctionTransformer) or estimator.validate:
        return False
    return estimator.func is not None and is_elementwise(estimator.func, estimator.kw_args)


def _accountants(private):
    """Yield findings if private steps have no accountant, or charge several budgets."""
    accountants = [step.params["accountant"] for step in private]
    without = [step.title for step in private if step.params["accountant"] is None]
    budgets = {id(getattr(accountant, "reservation", accountant)) for accountant in accountants}
    if without:
        message = "its fits are not charged anywhere"
        yield from (Finding(name, "no accountant", message) for name in without)
    elif len(budgets) > 1:
        message = "the steps learn from the same rows but charge different budgets"
        yield Finding(private[-1].title, "several accountants", message)
    terms = {terms_of(accountant) for accountant in accountants}
    if len({(term.relation, term.unit, term.max_rows) for term in terms}) > 1:
        message = (
            "the steps have different privacy units or relations, so their costs do not add up, "
            "and the cost of one fit is no guarantee"
        )
        yield Finding(private[-1].title, "several accountants", message)


def _cost(step, price):
    """Return the `StepCost` of a step; `price` is its `Cost`, None if it charges nothing."""
    estimator = step.estimator
    if estimator is None:
        name = "passthrough"
    elif isinstance(estimator, str):
        name = estimator
    else:
        name = type(estimator).__name__
    cost = price or Cost(fits=step.fits or 0, exact=step.fits is not None)
    return StepCost(
        step=step.title,
        estimator=name,
        kind=step.kind,
        reason=REASONS[step.kind],
        columns=step.columns,
        epsilon=cost.epsilon,
        delta=cost.delta,
        event=cost.event,
        fits=cost.fits,
        exact=cost.exact,
    )
