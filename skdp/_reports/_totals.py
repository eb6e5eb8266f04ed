"""Total cost of the releases of a privacy report, computed from their charges."""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from sklearn.frozen import FrozenEstimator

from skdp._reports._document import Total
from skdp.ledger._report import describe_composition, describe_head, describe_unit
from skdp.ledger._state import LedgerConfig, composed_price
from skdp.utils._documents import count_of
from skdp.utils._rounding import format_rounded_up
from skdp.utils._values import FrozenValue

# Text appended to the composition of a total that may include charges of other fits.
COUNTED_BY_LABEL = (
    "; the ledger does not record which fits a search or an ensemble made, so all charges that it "
    "may have made are counted, and the total may be higher than its cost"
)


UNREAD_LEDGER = "a ledger that is not in this report"
UNREAD_LEDGERS = "ledgers that are not in this report"


@dataclass(frozen=True, eq=False)
class PlainWrapper(FrozenValue):
    """A wrapper of scikit-learn, such as a search, that fits more models than it publishes.

    Parameters
    ----------
    name : str
        Class of the wrapper.
    n_fits : int or None
        Number of fits of its estimator; None if it is unknown, or if their costs may differ.
    has_other_labels : bool
        True if candidates may be estimators of other classes than the published model.
    publishes_last : bool
        True if the published model is fitted last, as in a search; stacking runs other fits later.
    makes_other_fits : bool
        True if the wrapper is known to run fits that it does not store. Other wrappers, such as
        user-defined classes, may run such fits.
    """

    name: str
    n_fits: int | None
    has_other_labels: bool
    publishes_last: bool = True
    makes_other_fits: bool = True

    # scikit-learn wrappers that store the estimator from each of their fits. Others, such as
    # searches, may run fits that they do not store.
    STORE_ALL_FITS: ClassVar[frozenset] = frozenset(
        {
            "ClassifierChain",
            "FixedThresholdClassifier",
            "IterativeImputer",
            "MultiOutputClassifier",
            "MultiOutputRegressor",
            "OneVsOneClassifier",
            "OneVsRestClassifier",
            "OutputCodeClassifier",
            "RegressorChain",
            "SelectFromModel",
            "TransformedTargetRegressor",
            "VotingClassifier",
            "VotingRegressor",
        }
    )

    @classmethod
    def stores_all_fits(cls, estimator):
        """Return True if a fitted wrapper stores all estimators that it has fitted."""
        kind = type(estimator)
        if kind.__module__.partition(".")[0] != "sklearn":
            return False
        if kind.__name__ == "CalibratedClassifierCV":
            # Without an ensemble, it also fits the folds and stores one estimator. A frozen
            # estimator is not fitted again.
            is_frozen = isinstance(estimator.estimator, FrozenEstimator)
            return estimator.ensemble is not False or is_frozen
        if kind.__name__ in ("ClassifierChain", "RegressorChain"):
            # The fits of the folds are not stored.
            return estimator.cv is None
        if kind.__name__ in ("StackingClassifier", "StackingRegressor"):
            # Fitted members are not fitted to folds.
            return isinstance(estimator.cv, str)
        if kind.__name__ == "RFE":
            # It stores the last fit, which is the only one if no column was eliminated.
            return bool(np.all(getattr(estimator, "support_", False)))
        return kind.__name__ in cls.STORE_ALL_FITS

    @classmethod
    def of(cls, estimator):
        """Return the description of a fitted wrapper."""
        results = getattr(estimator, "cv_results_", None)
        params = None
        if isinstance(results, dict) and "params" in results:
            params = results["params"]
        name = type(estimator).__name__
        if params is None:
            # scikit-learn's wrappers that store all fits are not described by this class.
            is_known = type(estimator).__module__.partition(".")[0] == "sklearn"
            return cls(name, None, True, publishes_last=False, makes_other_fits=is_known)
        keys = {key.rpartition("__")[2] for candidate in params for key in candidate}
        values = [value for candidate in params for value in candidate.values()]
        changes_steps = any(hasattr(value, "get_params") for value in values)
        if changes_steps or keys & {"epsilon", "delta", "accountant", "steps", "transformers"}:
            return cls(name, None, changes_steps or bool(keys & {"steps", "transformers"}))
        n_fits = len(params) * getattr(estimator, "n_splits_", 1)
        return cls(name, n_fits + bool(getattr(estimator, "refit", True)), False)


@dataclass(frozen=True, eq=False)
class Release(FrozenValue):
    """A statement in a report, with the containers in which its estimator is nested.

    Parameters
    ----------
    statement : PrivacyStatement
    outer_charges : tuple of Charge
        The charges of the private search that published its model. They are counted with the
        search, so the model's are not counted again.
    plan : (int, plan) or None
        The split budget of which the estimator is a step, with a number: copies of a pipeline share
        one plan, but each copy is a separate fit.
    wrapper : PlainWrapper or None
        The outermost non-private wrapper that fitted the estimator.
    nominal : (float, float)
        The estimator's parameters `epsilon` and `delta`, which bound the cost of a fit.
    """

    statement: object
    outer_charges: tuple = ()
    plan: tuple | None = None
    wrapper: PlainWrapper | None = None
    nominal: tuple = (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class UnpublishedReleases(FrozenValue):
    """Releases by a wrapper that stores no statement about them, such as noisy scores.

    It has the attributes of a `PrivacyStatement` from which totals are computed.

    Parameters
    ----------
    estimator : str
        Description of the releases, with the class of the wrapper.
    relation, unit, neighbors : str
    charges : tuple of Charge
    """

    estimator: str
    relation: str
    unit: str
    neighbors: str
    charges: tuple


@dataclass(eq=False)
class _Part:
    """The releases in one ledger, or in no ledger of the report.

    Attributes
    ----------
    unit_key : (str, str)
        Relation and description of the privacy unit. Only costs with the same key add up.
    names : dict of str to None
        Classes of the estimators, in order.
    neighbors : list of str
        Descriptions of the neighboring tables.
    missing : list of Missing
        Releases with the same models that are in no ledger of the report.
    cost : Total
    has_unread_ledger : bool
        True if the releases were charged to ledgers that are not in the report.
    unread_datasets : dict of (str, str) to None
        Names of the data sets in these ledgers, each with the identity of its ledger.
    """

    unit_key: tuple
    has_unread_ledger: bool = False
    unread_datasets: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)
    neighbors: list = field(default_factory=list)
    missing: list = field(default_factory=list)
    cost: Total = field(init=False)

    def add(self, statement):
        self.names[statement.estimator] = None
        self.neighbors.append(statement.neighbors)

    def describe(self):
        """Return a description of the releases, for a total that covers only them."""
        names = describe_combination(self.names)
        if not self.missing:
            return names
        return f"{names}, {describe_missing(self.missing)},"

    def place(self, head_hashes):
        """Return a description of the place where the releases are recorded.

        `head_hashes` has the last hashes of the ledgers of all parts, by the data set's name.
        """
        if self.cost.dataset:
            place = f"data set {self.cost.dataset!r}"
            if len(head_hashes[self.cost.dataset]) > 1:
                place += f" ({describe_head(self.cost.head_hash)})"
            return place
        if len(self.unread_datasets) > 1:
            names = dict.fromkeys(name for name, _ in self.unread_datasets)
            if len(names) == 1:
                return f"{UNREAD_LEDGERS} (data sets named {next(iter(names))!r})"
            return f"{UNREAD_LEDGERS} (data sets {', '.join(map(repr, names))})"
        if self.has_unread_ledger:
            return UNREAD_LEDGER
        return "no ledger"


@dataclass(frozen=True)
class Missing(FrozenValue):
    """Releases with a cost that is unknown to a report.

    Parameters
    ----------
    text : str
        Name of the releases, such as "the scores of GridSearchCV".
    is_certain : bool, default=True
        False if it is unknown whether there are any such releases.
    """

    text: str
    is_certain: bool = True


def describe_combination(names):
    """Return a description of several models as one subject of a guarantee."""
    names = list(names)
    if len(names) == 1:
        return names[0]
    return f"the combination of {' and '.join(names)}"


def describe_missing(missing):
    """Return a description of the releases that a total does not contain.

    Parameters
    ----------
    missing : list of Missing

    Returns
    -------
    str
        Such as "without the scores of GridSearchCV, which are charged in addition". The last part
        is left out for releases that may not exist.
    """
    certain = dict.fromkeys(entry.text for entry in missing if entry.is_certain)
    others = dict.fromkeys(entry.text for entry in missing if not entry.is_certain)
    texts = []
    if certain:
        texts.append(f"without {' and '.join(certain)}, which are charged in addition")
    if others:
        texts.append(f"without {' and '.join(others)}")
    return ", and ".join(texts)


def total_costs(releases, budgets, configs, description, missing=()):
    """Return the total cost of releases from the same rows.

    Charges in one ledger compose by its rule. Costs in several ledgers, and of releases in no
    ledger, add up (basic composition), which is valid for all of their rules. Costs under different
    relations or for different units do not add up, so there is no single total.

    Parameters
    ----------
    releases : list of Release
    budgets : dict of key to BudgetReport
    configs : dict of key to LedgerConfig
    description : str
        Description of all releases.
    missing : sequence of Missing, default=()
        Releases from the same rows whose cost is unknown, which the first total names.

    Returns
    -------
    list of Total
        One total or, if there is no single total, the totals of the parts. Each names only the
        estimators whose charges it counts.
    """
    recorded, unrecorded = _split_by_ledger(releases, budgets)
    parts = [
        _recorded_part(key, entries, budgets[key], configs.get(key))
        for key, entries in recorded.items()
    ]
    parts = _joined_by_root(parts, budgets)
    parts += [_unrecorded_part(key, entries) for key, entries in unrecorded.items()]
    for part in parts[:1]:
        part.missing += missing
    return _headline(parts, description)


def _headline(parts, description):
    """Return the single total of all parts, or one total per part."""
    if not parts:
        return []
    units = {part.unit_key for part in parts}
    is_complete = not any(part.missing for part in parts)
    if len(parts) == 1:
        if is_complete:
            of = description
        else:
            of = parts[0].describe()
        return [replace(parts[0].cost, of=of)]
    if len(units) > 1:
        reason = (
            f"no single total: {_describe_places(parts)}, whose relations or privacy units differ"
        )
        return [
            replace(
                part.cost,
                of=f"{part.describe()} alone (no single total: {_describe_places(parts)})",
                composition=f"{part.cost.composition}; {reason}",
            )
            for part in parts
        ]
    costs = [part.cost for part in parts]
    head_hashes = {cost.dataset: set() for cost in costs}
    for cost in costs:
        head_hashes[cost.dataset].add(cost.head_hash)
    neighbors = common_neighbors([text for part in parts for text in part.neighbors])
    datasets = dict.fromkeys(cost.dataset for cost in costs if cost.dataset)
    described = describe_combination(dict.fromkeys(name for part in parts for name in part.names))
    if not is_complete:
        described += f", {describe_missing([e for part in parts for e in part.missing])},"
    return [
        Total(
            of=description if is_complete else described,
            epsilon=math.fsum(cost.epsilon for cost in costs),
            delta=math.fsum(cost.delta for cost in costs),
            neighbors=f"{parts[0].unit_key[0]}: {neighbors}",
            composition=f"basic, over {_describe_places(parts)}",
            dataset=" and ".join(datasets),
            head_hash="",
            n_charges=sum(cost.n_charges for cost in costs),
            parts=tuple(
                f"{' and '.join(part.names)}: "
                f"({format_rounded_up(part.cost.epsilon, part.cost.delta)}) in "
                f"{part.place(head_hashes)}"
                for part in parts
            ),
        )
    ]


def _describe_places(parts):
    """Return where the charges of the parts are recorded, as text.

    For example, "2 ledgers and releases in a ledger that is not in this report and releases in no
    ledger"; places that do not occur are left out.
    """
    n_ledgers = sum(bool(part.cost.dataset) for part in parts)
    texts = []
    if n_ledgers:
        texts = [count_of(n_ledgers, "ledger")]
    unread = dict.fromkeys(name for part in parts for name in part.unread_datasets)
    if len(unread) > 1:
        texts.append(f"releases in {UNREAD_LEDGERS}")
    elif any(part.has_unread_ledger for part in parts):
        texts.append(f"releases in {UNREAD_LEDGER}")
    if any(not part.cost.dataset and not part.has_unread_ledger for part in parts):
        texts.append("releases in no ledger")
    return " and ".join(texts)


def _joined_by_root(parts, budgets):
    """Join the parts of budgets that were reserved from one data set, or are that data set.

    All of them use basic composition, and the charges of a reserved budget never add up to more
    than the data set was charged for it.
    """
    joined = {}
    for part in parts:
        budget = budgets[part.cost.dataset, part.cost.head_hash]
        joined.setdefault(budget.identity or id(part), []).append((part, budget))
    heads = {b.identity: b.head_hash for b in budgets.values() if not b.reserved_from}
    result = []
    for members in joined.values():
        part, budget = members[0]
        for other, _ in members[1:]:
            part.names |= other.names
            part.neighbors += other.neighbors
            part.missing += other.missing
        costs = [member.cost for member, _ in members]
        part.cost = replace(
            part.cost,
            of="",
            epsilon=math.fsum(cost.epsilon for cost in costs),
            delta=math.fsum(cost.delta for cost in costs),
            n_charges=sum(cost.n_charges for cost in costs),
            dataset=budget.reserved_from or budget.dataset,
            head_hash=heads.get(budget.identity, budget.head_hash),
        )
        result.append(part)
    return result


def _split_by_ledger(releases, budgets):
    """Return the charges of releases by ledger, and those in no ledger by relation and unit.

    Returns
    -------
    recorded : dict of key to list of (Release, list of Charge)
    unrecorded : dict of (relation, unit, is_in_ledger) to list of (Release, list of Charge)
        `is_in_ledger` is True for charges in a ledger that is not in the report.
    """
    records = {}
    # A longer report of the same ledger contains all charges of a shorter report.
    for key, budget in sorted(budgets.items(), key=lambda item: len(item[1].charges)):
        for charge in budget.charges:
            records[charge.hash] = key, charge
    recorded = {}
    unrecorded = {}
    # All steps that a private search published share its charge, which is one object.
    seen = set()
    for release in releases:
        statement = release.statement
        charges_by_key = {}
        new_charges = []
        is_counted_elsewhere = False
        for charge in statement.charges:
            if charge.hash in records:
                # One charge in the ledger covers all steps of a plan.
                key, entry = records[charge.hash]
                charges_by_key.setdefault(key, []).append(entry)
                continue
            # A model that was refitted after the search has a separate charge.
            if id(charge) not in seen and charge not in release.outer_charges:
                new_charges.append(charge)
            else:
                is_counted_elsewhere = True
            seen.add(id(charge))
        for key, charges in charges_by_key.items():
            recorded.setdefault(key, []).append((release, charges))
        for is_in_ledger in (False, True):
            charges = [charge for charge in new_charges if bool(charge.hash) == is_in_ledger]
            if charges or (is_counted_elsewhere and not is_in_ledger):
                unit_key = statement.relation, statement.unit, is_in_ledger
                unrecorded.setdefault(unit_key, []).append((release, charges))
    unrecorded = {
        key: entries
        for key, entries in unrecorded.items()
        if any(charges for _, charges in entries)
    }
    return recorded, unrecorded


def _recorded_part(key, entries, budget, config):
    """Return the part of the total that is charged in one ledger.

    Parameters
    ----------
    key : tuple of str
        The data set, and the last hash of its ledger.
    entries : list of (Release, list of Charge)
        The releases, each with its charges in this ledger.
    budget : BudgetReport
    config : LedgerConfig or None
        None derives it from the budget report.

    Returns
    -------
    _Part
    """
    dataset, head_hash = key
    if config is None:
        config = config_of(budget)
    charges = {}
    first = entries[0][0].statement
    part = _Part((first.relation, first.unit))
    composition = describe_composition(config.composition)
    for release, release_charges in entries:
        part.add(release.statement)
        charges |= {charge.hash: charge for charge in release_charges}
        if release.wrapper is not None:
            # The ledger does not record which fit made a charge. Therefore, all charges with the
            # same label are counted, up to the published model's charge if it is the last. They
            # include all fits.
            labels = {charge.label for charge in release_charges}
            last = math.inf
            if release.wrapper.publishes_last:
                last = max(charge.sequence for charge in release_charges)
            charges |= {
                charge.hash: charge
                for charge in budget.charges
                if charge.sequence <= last
                and (release.wrapper.has_other_labels or charge.label in labels)
            }
    if len(charges) > len({c.hash for _, release_charges in entries for c in release_charges}):
        composition += COUNTED_BY_LABEL
    epsilon, delta = composed_price(tuple(charges.values()), config)
    part.cost = Total(
        of="",
        epsilon=epsilon,
        delta=delta,
        neighbors=f"{config.relation}: {common_neighbors(part.neighbors)}",
        composition=composition,
        dataset=dataset,
        head_hash=head_hash,
        n_charges=len(charges),
    )
    return part


def _unrecorded_part(unit_key, entries):
    """Return the part of the charges in no ledger of the report, for one relation and unit."""
    relation = unit_key[0]
    part = _Part(unit_key[:2], has_unread_ledger=unit_key[2])
    groups = {}
    for release, charges in entries:
        part.add(release.statement)
        hashes = {charge.hash for charge in charges if charge.hash}
        if hashes and hasattr(release.statement, "datasets_of"):
            part.unread_datasets |= dict.fromkeys(release.statement.datasets_of(hashes))
        if charges:
            if release.wrapper is None:
                key = None
            else:
                key = id(release.wrapper)
            groups.setdefault(key, []).append((release, charges))
    unit = "row"
    if unit_key[1] != describe_unit("row", 1):
        # The costs of all parts of a partition add up. This holds for persons, who may have rows in
        # several parts, and is an upper bound for groups of rows.
        unit = "person"
    basic = LedgerConfig(1.0, 0.0, relation=relation, unit=unit)
    costs = []
    n_charges = 0
    has_plans = False
    for group in groups.values():
        planned = [(release.plan, charges) for release, charges in group]
        unplanned, group_costs = separate_plans(planned, relation)
        n_group_charges = len(group_costs) + sum(map(len, unplanned))
        has_plans |= bool(group_costs)
        # Calls of partial_fit on disjoint rows compose in parallel within one model, but not with
        # other models' calls, so each model is composed separately.
        group_costs += [composed_price(charges, basic) for charges in unplanned]
        wrapper = group[0][0].wrapper
        if wrapper is not None and wrapper.n_fits is None:
            text = f"the other fits of {wrapper.name}"
            if not wrapper.makes_other_fits:
                text = f"other fits that {wrapper.name} may have made"
            part.missing.append(Missing(text, wrapper.makes_other_fits))
        elif wrapper is not None:
            # Other fits may cost up to the values of the parameters epsilon and delta.
            group_costs = [_cost_of_fit(group, group_costs)] * wrapper.n_fits
            n_group_charges *= wrapper.n_fits
        costs += group_costs
        n_charges += n_group_charges
    composition = "basic"
    if has_plans:
        composition = "basic, each split budget as the plan that it is"
    part.cost = Total(
        of="",
        epsilon=math.fsum(epsilon for epsilon, _ in costs),
        delta=math.fsum(delta for _, delta in costs),
        neighbors=f"{relation}: {common_neighbors(part.neighbors)}",
        composition=composition,
        dataset="",
        head_hash="",
        n_charges=n_charges,
    )
    return part


def _cost_of_fit(group, costs):
    """Return the most that one fit of a wrapper's estimator costs, as (epsilon, delta)."""
    plans = dict(release.plan for release, _ in group if release.plan is not None)
    limits = [(plan.epsilon, plan.delta) for plan in plans.values()]
    limits += [release.nominal for release, _ in group if release.plan is None]
    summed = [math.fsum(values) for values in zip(*costs, strict=True)]
    limit = [math.fsum(values) for values in zip(*limits, strict=True)]
    return tuple(map(max, summed, limit))


def separate_plans(planned_charges, relation):
    """Separate the charges that steps of split budgets cover from the others.

    Parameters
    ----------
    planned_charges : list of (plan, list of Charge)
        The charges of each statement, with the number and the plan of its split budget, or None.
    relation : {"add_remove", "replace_one"}

    Returns
    -------
    unplanned : list of list of Charge
        The charges of each statement that no plan covers.
    costs : list of (float, float)
        The (epsilon, delta) of each plan that covers some charges.
    """
    plans = dict(plan for plan, _ in planned_charges if plan is not None)
    steps = {number: list(plan.planned) for number, plan in plans.items()}
    covered = {number: [] for number in plans}
    unplanned = []
    for plan, charges in planned_charges:
        others = charges
        if plan is not None:
            number, _ = plan
            others = []
            for charge in charges:
                if _take_step(charge, steps[number], relation):
                    covered[number].append(charge)
                else:
                    others.append(charge)
        if others:
            unplanned.append(others)
    costs = [_cost_of_plan(covered[i], plan) for i, plan in plans.items() if covered[i]]
    return unplanned, costs


def _take_step(charge, steps, relation):
    """Remove the first step that covers a charge; return False if no step does.

    An estimator that was added to the pipeline later, or refitted, is covered only if it costs at
    most as much as a planned step for which nothing else was charged.
    """
    for step in steps:
        if _is_covered(charge, step, relation):
            steps.remove(step)
            return True
    return False


def _is_covered(charge, step, relation):
    """Return True if a charge costs at most the planned cost of a step."""
    if step.exact:
        return step.covers(charge.event, relation)
    delta = getattr(step.event, "delta", 0.0)
    return charge.epsilon <= step.event.epsilon and charge.delta <= delta


def _cost_of_plan(charges, plan):
    """Return the (epsilon, delta) of the charged steps of one split budget.

    All steps were planned before the first one ran, so the plan's cost bounds them together. If
    only a few steps were fitted, the sum of their charges may be less.
    """
    epsilon = math.fsum(charge.epsilon for charge in charges)
    delta = math.fsum(charge.delta for charge in charges)
    if epsilon <= plan.epsilon and delta <= plan.delta:
        return epsilon, delta
    return plan.epsilon, plan.delta


def common_neighbors(descriptions):
    """Return the description of the neighboring tables of several releases together.

    If the number of units is public for one release, it is public for all of them together.
    """
    for description in descriptions:
        if "is public" in description:
            return description
    return descriptions[0]


def config_of(report):
    """Return a ledger configuration with basic composition, which holds for every ledger."""
    return LedgerConfig(
        *report.limit,
        missing_ids=report.missing_ids,
        relation=report.relation,
        unit=report.unit,
        max_rows=report.max_rows,
    )
