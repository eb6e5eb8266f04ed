"""What a pipeline learns without privacy, pays for twice, and costs."""

from dataclasses import asdict, replace

from sklearn.base import is_classifier

from skdp.base import terms_of
from skdp.pipeline._instances import infers_types, is_changed, is_estimator, named_parts, of_skdp
from skdp.pipeline._kinds import REASONS, is_private
from skdp.pipeline._parameters import PublicTable, find_refusals
from skdp.pipeline._prices import Cost, paid_twice, price_steps, total_price
from skdp.pipeline._steps import find_steps, holds_private, steps_of_search, unaccepted
from skdp.pipeline._verified import fails_on, sklearn_name, turned_by_nulls
from skdp.utils._documents import PrintedDocument, Section
from skdp.utils._rounding import in_digits
from skdp.utils._validation import check_integer
from skdp.utils._values import FrozenValue


class Finding(FrozenValue):
    """Something about a pipeline that its owner should know.

    Parameters
    ----------
    step : str
        The step's name.
    problem : str
        "not private", "raw scores", "stratified folds", "folds not by person", "paid twice",
        "local", "not checkable", "not row-wise", "declared public", "no accountant",
        "several accountants", "may fail after the charge", "wrong parameter", which a fit would
        refuse, or "assumes of the table", which is what the verdict assumes of it.
    message : str
        What to do about it.
    """

    step: str
    problem: str
    message: str

    def __str__(self):
        return f"{self.step}: {self.problem}: {self.message}"


class StepCost(Cost, kw_only=True):
    """One step of a pipeline and what one fit of it costs.

    Parameters
    ----------
    step : str
        The step's name.
    estimator : str
        Its class, or "passthrough" or "drop".
    kind : str
        As `step_kind` says.
    reason : str
        What that means.
    columns : str
        The columns that it is given, in words; empty for all.
    **cost
        As of `Cost`.
    """

    step: str
    estimator: str
    kind: str
    reason: str
    columns: str


class PipelineCheck(PrintedDocument, FrozenValue):
    """What `check_pipeline` found; iterating gives the findings, printing gives all.

    Parameters
    ----------
    findings : tuple of Finding
        What is wrong, or worth knowing.
    steps : tuple of StepCost
        Every step, in the order in which they are fitted.
    epsilon, delta : float
        What a fit of the pipeline costs if its steps are charged one by one: the sums.
    joint_epsilon : float
        What the same releases cost at that delta if they are charged as one plan.
    accepted : bool
        Whether every step is private, learns nothing or is declared public.
    exact : bool
        Whether that is what a fit costs; otherwise it is the least that it costs, and the text
        says "at least".
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
        found = [asdict(finding) for finding in self.findings]
        return vars(self) | {"findings": found, "steps": steps}

    def _rows(self):
        for step in self.steps:
            where = f" on {step.columns}" if step.columns else ""
            price = f"({in_digits(step.epsilon, step.delta)})" if step.event else "-"
            unknown = step.fits == 0 and not step.exact
            times = "" if step.fits or not step.event else " x ?" if unknown else " x 0"
            least = "" if step.exact or not step.event or unknown else "at least "
            yield step.step, step.estimator + where, step.kind, least + price + times

    def _totals(self):
        least = "" if self.exact else "at least "
        price = f"({in_digits(self.epsilon, self.delta)})"
        if self.joint_epsilon < self.epsilon:
            joint = f"({in_digits(self.joint_epsilon, self.delta)})"
            price = f"{price} step by step, {joint} as one plan"
        return f"one fit costs {least}{price}"

    def section(self):
        """Return the steps, their cost and the findings as a part of a document.

        Returns
        -------
        Section
        """
        table = (("step", "estimator", "kind", "epsilon, delta"), *self._rows())
        notes = (self._totals(), *map(str, self.findings or ["no findings"]))
        return Section("Steps of the pipeline", tables=(table,), notes=notes)


def check_pipeline(pipe, *, n_samples=None, n_features=None, public_steps=()):
    """Say what a pipeline learns without privacy, what it pays for twice, and what it costs.

    Nothing is fitted to data.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, a search over
        one, or one estimator.
    n_samples, n_features : int, default=None
        The shape of the table, on which the cost of some steps depends.
    public_steps : sequence of str, default=()
        Names of steps that learn from the data, declared not to need protection.

    Returns
    -------
    PipelineCheck

    Raises
    ------
    ValueError
        If `public_steps` names no step, a private step's epsilon is out of range, or the shape
        is impossible: `n_features` must have the columns that are chosen.

    Notes
    -----
    Kinds of steps are those of `step_kind`: what was verified is accepted, by its exact class and
    parameters, and the rest is refused. What the verdict assumes of the table beside that is a
    finding, except that a sparse matrix is assumed to have one entry for each cell: several are
    added in an order that other rows decide. What frozen, public and your own steps refuse, they
    refuse when their turn comes, which may be after a charge. Taken to be public are the table's
    shape, its names, the dtypes of its container, by which a `make_column_selector` chooses, and
    what is declared: `public_steps` and ``__skdp_kind__``.

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
    left = unaccepted(steps, public_steps)
    findings = [finding for step in steps for finding in _of_cross_validator(step, steps)]
    findings += [_finding(step) for step in left if step.kind != "cross_validates"]
    findings += [
        Finding(step.title, "declared public", f"{REASONS[step.kind]}, which you allow")
        for step in unaccepted(steps)
        if step not in left
    ]
    known = PublicTable(n_rows=n_samples, n_columns=n_features)
    findings += [
        Finding(step.title, "wrong parameter", str(error))
        for step, error in find_refusals(pipe, known)
        if step.kind in ("private", "stateless", "declared")
    ]
    findings += [Finding(s.title, "paid twice", message) for s, message in paid_twice(steps)]
    findings += _by_values(steps)
    priced = [step for step in steps if step.kind == "private"]
    findings += _accountants(priced)
    prices = price_steps(priced, n_samples)
    total = total_price(prices)
    known = not any(_may_charge(step) for step in steps)
    return PipelineCheck(
        findings=tuple(dict.fromkeys(findings)),
        steps=tuple(_cost(step, prices.get(step.name)) for step in steps),
        accepted=not left,
        **total | {"exact": known and total["exact"]},
    )


def _may_charge(step):
    """Say whether a step may charge what cannot be known.

    So may an estimator that is not skdp's or was changed, a search, which may try others, and one
    whose transforms are charged.
    """
    estimator = step.estimator
    if step.kind not in ("learns", "wrapper") or not hasattr(estimator, "fit"):
        return step.kind in ("cross_validates", "local")
    return not (of_skdp(estimator) or sklearn_name(estimator)) or is_changed(estimator)


def _look_inside(pipe, prefix, n_features, before=()):
    """Yield the steps, also those in wrappers; how often these fit them is not known."""
    for step in find_steps(pipe, n_features, prefix, before):
        yield step
        if step.kind in ("cross_validates", "wrapper") and not is_changed(step.estimator):
            width = step.n_features if step.kind == "cross_validates" else None
            for name, inner in named_parts(step.estimator):
                inside = _look_inside(inner, step.parameter(name), width, step.before)
                yield from (replace(part, fits=None) for part in inside)


def _finding(step):
    if step.kind == "local":
        message = "each transform is a charge, predictions too; no plan of fits can hold it"
        return Finding(step.title, "local", message)
    if step.kind in ("wrapper", "opaque"):
        remedy = "name it in public_steps if what it makes of a row depends on that row alone"
        if step.kind == "wrapper":
            remedy = "name it and the steps inside it in public_steps if what they learn is public"
        if step.kind == "wrapper" and holds_private(step.estimator):
            remedy = (
                "public_steps cannot excuse it, because private steps are inside: give these their "
                "epsilon and accountant and fit it unplanned, or use its estimators by themselves"
            )
        return Finding(step.title, "not checkable", f"{REASONS[step.kind]}; {remedy}")
    name = type(step.estimator).__name__ if is_estimator(step.estimator) else "this choice"
    if step.kind == "not_row_wise":
        part = getattr(step.estimator, "estimator", step.estimator)
        remedy = ROW_WISE_REMEDIES.get(type(part).__name__, PRODUCTS)
        message = f"{name} {REASONS['not_row_wise']}, because of the person as the unit or of "
        message += f"count='noisy'; {remedy}"
        return Finding(step.title, "not row-wise", message)
    message = f"{name} {REASONS['learns']}"
    return Finding(step.title, "not private", f"{message}; {_remedy(step)}")


FRAMES = (
    "a data frame of what may be words takes its types from all cells, so that one changes "
    "the others: use set_output(transform='default')"
)
COLUMNS = (
    "list the columns, or choose them by make_column_selector, behind another step by "
    "pattern alone: pandas makes types of the values of what a function returns"
)
WORDS = (
    "declare its categories as lists of words, without min_frequency and max_categories; "
    "for categories that are numbers use DPOneHotEncoder(categories=...), which charges "
    "nothing for them: scikit-learn's keep them in the column's type, which one missing value "
    "changes, so that the fitted encoder tells of it"
)
NULLS = (
    "one null in a column of whole numbers of polars or Arrow makes all its cells floats before "
    "the function is called: use validate=True, which refuses nulls, or columns of floats"
)
# By the names of classes, and of the parameters by which a container looks at values.
REMEDIES = {
    "sparse_threshold": (
        "sparse_output_ tells an exact count: use sparse_threshold=0, or dense steps"
    ),
    "set_output": FRAMES,
    "memory": (
        "use None: it keeps rows on disk, in clear, and a private step that is remembered makes "
        "the same release again if no row has changed, and so tells of each"
    ),
    "FeatureHasher": (
        "it adds colliding numbers in an order that other rows decide, so that their sum may round "
        "differently: use input_type='string', or an integer dtype"
    ),
    "OneHotEncoder": WORDS,
    "OrdinalEncoder": WORDS,
    "SplineTransformer": "declare its knots",
    "SimpleImputer": (
        "use DPSimpleImputer, which charges nothing with strategy='constant'; SimpleImputer "
        "keeps a number in the column's type, which one missing value changes, and is accepted "
        "only for a word: strategy='constant', fill_value='?', keep_empty_features=True"
    ),
    "FunctionTransformer": (
        "use a ufunc of numpy or scipy without kw_args (np.clip and np.nan_to_num only in "
        "one of yours that makes the table an array of doubles first), or declare that yours "
        "treats each row by itself by its own attribute __skdp_kind__ = 'stateless'"
    ),
}


PRODUCTS = (
    "it multiplies matrices: use a function of your own that computes each row's products by "
    "np.multiply(X, weights, order='C').sum(axis=1), in a FunctionTransformer, and declare it by "
    "its attribute __skdp_kind__ = 'stateless'"
)
ROW_WISE_REMEDIES = {
    "Normalizer": "use Normalizer(norm='max'), or the data_norm of the private step",
    "FunctionTransformer": (
        "use a function of scipy.special, such as log1p or expm1, which takes one number at a "
        "time, or one of your own that begins with X = np.array(X, order='C') and declares itself "
        "by its attribute __skdp_kind__ = 'stateless'"
    ),
}


def _remedy(step):
    estimator = step.estimator
    if not is_estimator(estimator):
        return REMEDIES.get(step.name.rpartition("__")[2], COLUMNS)
    if is_changed(estimator):
        return "the instance has a method or callbacks of its own, which no class was verified with"
    if infers_types(estimator):
        return FRAMES
    other = "use a private one, or name it in public_steps if what it learns is public"
    if is_private(estimator):
        other = (
            "it was not verified; if its fit is charged, declare on its own class "
            "__skdp_kind__ = 'private'"
        )
    return REMEDIES.get(type(estimator).__name__, other)


def _of_cross_validator(step, steps):
    if step.kind != "cross_validates":
        return
    message = "its scores, and what is chosen by them, are raw; use skdp.model_selection"
    yield Finding(step.title, "raw scores", message)
    cv, inner = step.params["cv"], step.params.get("estimator", step.estimator)
    private = [other for other in steps if step.holds(other) and other.kind == "private"]
    by_default = (cv is None or isinstance(cv, int)) and is_classifier(inner)
    by_person = any(terms_of(other.params["accountant"]).unit == "person" for other in private)
    if by_person and type(cv).__name__ != "PersonKFold":
        message = "a person's rows move others', or are in several folds; use cv=PersonKFold(k)"
        yield Finding(step.title, "folds not by person", message)
    elif by_default or "Stratified" in type(cv).__name__:
        message = (
            "which rows are in a fold depends on labels, so that the sum of charges is no "
            "guarantee; use cv=KFold(k, shuffle=True, random_state=0)"
        )
        yield Finding(step.title, "stratified folds", message)
    grid = step.params.get("param_grid", step.params.get("param_distributions"))
    if grid is None:
        return
    tried = " ".join(name for part in (grid if isinstance(grid, list) else [grid]) for name in part)
    for inside in private:
        name = inside.name.removeprefix(step.name and f"{step.name}__").partition("__")[2]
        if hasattr(inside.estimator, "transform") and name not in tried:
            message = (
                "the search fits and charges it again for every candidate and fold, but tries "
                "nothing of it: fit it once, before the search"
            )
            yield Finding(inside.title, "paid twice", message)


def _by_values(steps):
    """Yield what is assumed of the table's values, and what one makes fail after a charge."""
    charged = False
    for step in steps:
        part = step.estimator.estimator if step.kind == "frozen" else step.estimator
        if turned_by_nulls(part):
            yield Finding(step.title, "assumes of the table", NULLS)
        if charged and fails_on(part):
            message = "what was fitted before it stays charged if its fit raises on "
            yield Finding(step.title, "may fail after the charge", message + fails_on(part))
        charged = charged or step.kind in ("private", "local")
        for inside in steps_of_search(step):
            yield from _by_values(inside)


def _accountants(private):
    accountants = [step.params["accountant"] for step in private]
    without = [step.title for step in private if step.params["accountant"] is None]
    budgets = {id(getattr(each, "reservation", each)) for each in accountants}
    if without:
        message = "its fits are not charged anywhere"
        yield from (Finding(name, "no accountant", message) for name in without)
    elif len(budgets) > 1:
        message = "the steps learn from the same rows but charge different budgets"
        yield Finding(private[-1].title, "several accountants", message)


def _cost(step, price):
    estimator = step.estimator
    name = estimator if isinstance(estimator, str) else type(estimator).__name__
    name = "passthrough" if estimator is None else name
    cost = price or Cost(fits=step.fits or 0, exact=step.fits is not None)
    known = {field: getattr(cost, field) for field in Cost.__dataclass_fields__}
    known |= {"kind": step.kind, "reason": REASONS[step.kind], "columns": step.columns}
    return StepCost(step=step.title, estimator=name, **known)
