"""The statements, budgets and charges that the sources of a privacy report contain."""

import math
from collections.abc import Callable
from dataclasses import replace

from sklearn.frozen import FrozenEstimator

from skdp._privacy_statement import PrivacyStatement
from skdp._reports._nested_models import (
    find_nested,
    is_fitted,
    is_of_sklearn,
    number_of_scores,
    private_prototypes,
    private_scorers,
    steps_of,
    wrapped_estimators,
)
from skdp._reports._totals import Missing, PlainWrapper, Release, UnpublishedReleases, total_costs
from skdp._version import __version__
from skdp.accounting import ApproximateDP, PureDP
from skdp.ledger import PrivacyAccountant
from skdp.ledger._report import BudgetReport, describe_relation, describe_unit
from skdp.ledger._state import Charge

# The function that `register_uncovered_reader` sets. The list is empty until `skdp.pipeline` is
# imported, which knows such steps but may not be imported here; afterwards it has one entry.
_uncovered_readers: list[Callable] = []


def register_uncovered_reader(describe_uncovered_steps):
    """Set the function that finds the steps that learn from rows without a charge.

    Parameters
    ----------
    describe_uncovered_steps : callable
        Function of an estimator that returns a list of pairs: the name of a step, "" for the
        estimator itself, and a description.
    """
    _uncovered_readers[:] = [describe_uncovered_steps]


class ReportContents:
    """Statements and budgets of the sources of a report.

    Attributes
    ----------
    statements : list of PrivacyStatement
    releases : list of Release
        Each statement, with the containers in which its estimator is nested.
    unpublished : list of Release
        Further releases by wrappers, which have no statement.
    missing : list of Missing
        Releases by wrappers that are in no ledger of the report.
    budgets : dict
        Maps a data set's name and last hash to its `BudgetReport`.
    plan_costs : dict
        Maps the hash of a charge to the (epsilon, delta) of the plan that was charged as one.
    configs : dict
        Maps the same key to the `LedgerConfig`, which states the composition rule.
    """

    def __init__(self, *, reads_ledgers=True):
        self.reads_ledgers = reads_ledgers
        self.plan_costs = {}
        self.statements = []
        self.releases = []
        self.unpublished = []
        self.missing = []
        self.budgets = {}
        self.configs = {}
        # The plan of the container being added, if any, and the number of plans so far.
        self._plan = None
        self._n_plans = 0
        # The outermost non-private wrapper of the estimator being added.
        self._wrapper = None
        # The outermost estimators without a statement, whose steps may learn without a charge.
        self._judged = []
        # True while something inside one of them is being added.
        self._is_judged = False
        # The estimators in which the one being added is nested.
        self._outer = ()

    def unrecorded_totals(self, unit_key):
        """Return the totals of the statements that are in no ledger, for one (relation, unit).

        Charges that are in a ledger are not counted here.
        """
        releases = []
        for release in self.releases:
            statement = release.statement
            charges = tuple(charge for charge in statement.charges if not charge.hash)
            if charges and (statement.relation, statement.unit) == unit_key:
                statement = replace(statement, charges=charges)
                releases.append(replace(release, statement=statement))
        return total_costs(releases, {}, {}, "")

    def add(self, source, name, outer_charges=()):
        """Add a source and its nested estimators.

        `outer_charges` are the charges of the search that published the source.
        """
        if isinstance(source, PrivacyStatement):
            self._add_statement(source, outer_charges)
        elif isinstance(source, BudgetReport):
            self._add_budget(source)
        elif hasattr(source, "report") and hasattr(source, "charge"):
            self._add_ledger(source)
        elif isinstance(source, FrozenEstimator):
            self.add(source.estimator, type(source.estimator).__name__, outer_charges)
        elif hasattr(source, "get_params"):
            self._add_estimator(source, name, outer_charges)
        elif isinstance(getattr(source, "privacy_", None), PrivacyStatement):
            # Noisy scores, which are not an estimator.
            self._add_statement(source.privacy_, outer_charges)
            self._add_ledger(getattr(source, "accountant", None), source.privacy_.charges)
        else:
            raise ValueError(
                "sources must be fitted estimators, noisy scores, accountants, statements or "
                f"budget reports, got {source!r}"
            )

    def _add_statement(self, statement, outer_charges, nominal=(0.0, 0.0)):
        """Add a statement, as a release in the plan and the wrapper that are being added.

        `nominal` is the epsilon and delta of the estimator's parameters.
        """
        self.statements.append(statement)
        self.releases.append(Release(statement, outer_charges, self._plan, self._wrapper, nominal))

    def _add_budget(self, report, config=None):
        """Add the report of a data set, unless a more complete one was added before."""
        key = report.dataset, report.head_hash
        for other_key, other in list(self.budgets.items()):
            is_same = other.dataset == report.dataset and other.identity == report.identity
            if not (other_key == key or (is_same and report.identity)):
                continue
            # Totals are computed from all charges, so a selection never replaces them.
            if (other.n_charges, not other.shown) > (report.n_charges, not report.shown):
                return
            config = config or self.configs.get(other_key)
            if other_key != key:
                del self.budgets[other_key]
        self.budgets[key] = report
        if config is not None:
            self.configs[key] = config

    def _add_ledger(self, accountant, charges=()):
        """Add the data set of an accountant, and those whose budgets cover it or the charges.

        If the budget of a data set was reserved from another one (`reserve`), the other one is
        added, too.

        Parameters
        ----------
        accountant : PrivacyAccountant, reservation of a plan or None
        charges : tuple of Charge
            Charges of the model that has the accountant; () for an accountant without a model.
            Earlier calls of `partial_fit` may have been charged to other data sets of the same
            ledger, which are added. If none of the charges is in the accountant's data set, the
            accountant was set after the fit, and its data set is left out.
        """
        # The accountant of a step of a plan only passes on the charge of the whole plan, which is
        # in the ledger of the plan's accountant.
        accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
        if not (self.reads_ledgers and hasattr(accountant, "report")):
            return
        handles = [accountant]
        if isinstance(accountant, PrivacyAccountant):
            known = {charge.hash for charge in accountant.charges}
            hashes = {charge.hash for charge in charges if charge.hash}
            if charges and not hashes & known:
                handles = []
            handles += accountant._handles_of(hashes - known)
            handles = [*dict.fromkeys(handle._root() for handle in handles), *handles]
        for handle in dict.fromkeys(handles):
            self._add_budget(handle.report(), handle.config)

    def _add_estimator(self, source, name, outer_charges):
        """Add the statement and the ledger of an estimator, and then the estimators inside it.

        An estimator without `privacy_`, such as a pipeline, adds only the estimators inside it. Its
        steps are listed as not covered if they learn without a charge. `_plan`, `_wrapper`,
        `_outer` and `_is_judged` describe the estimators around the one being added, and are
        restored at the end.
        """
        if any(source is outer for outer in self._outer):
            # The source refers to an estimator that contains it.
            return
        outer_estimators = self._outer
        self._outer = (*outer_estimators, source)
        nested_estimators = find_nested(source, outer_estimators)
        parameters = source.get_params(deep=False)
        begins_wrapper = False
        was_judged = self._is_judged
        if hasattr(source, "privacy_"):
            self._is_judged = False
            nominal = parameters.get("epsilon", 0.0), parameters.get("delta", 0.0)
            self._add_statement(source.privacy_, outer_charges, nominal)
            outer_charges = (*outer_charges, *source.privacy_.charges)
            reservation = getattr(parameters.get("accountant"), "reservation", None)
            if reservation is not None:
                cost = reservation.epsilon, reservation.delta
                self.plan_costs |= {charge.hash: cost for charge in source.privacy_.charges}
        elif "epsilon" in parameters:
            raise ValueError(f"{name} is not fitted: it has no privacy statement")
        else:
            if not self._is_judged:
                self._judged.append((name, source))
                self._is_judged = True
            is_wrapper = bool(wrapped_estimators(source))
            begins_wrapper = (
                self._wrapper is None and is_wrapper and not PlainWrapper.stores_all_fits(source)
            )
        charges = ()
        if hasattr(source, "privacy_"):
            charges = source.privacy_.charges
        self._add_ledger(parameters.get("accountant"), charges)
        # The plan of the outermost container covers all steps within it.
        plan = getattr(source, "_budget_plan", None)
        begins_plan = self._plan is None and plan is not None
        if begins_plan:
            self._plan = self._n_plans, plan
            self._n_plans += 1
        if begins_wrapper:
            self._wrapper = _with_inner_wrappers(PlainWrapper.of(source), nested_estimators)
        n_releases = len(self.releases)
        for nested_name, nested in nested_estimators:
            self.add(nested, f"{name}: {nested_name} ({type(nested).__name__})", outer_charges)
        is_wrapper = not hasattr(source, "privacy_") and not steps_of(source)
        if is_wrapper and self.reads_ledgers and is_fitted(source):
            published = [release.statement for release in self.releases[n_releases:]]
            self._add_unpublished(source, published)
        if begins_plan:
            self._plan = None
        if begins_wrapper:
            self._wrapper = None
        self._outer = outer_estimators
        self._is_judged = was_judged

    def _add_unpublished(self, wrapper, published):
        """Add the releases of a fitted wrapper that are in none of its published models.

        Parameters
        ----------
        wrapper : estimator
            A search, a selector or another estimator without a statement.
        published : list of PrivacyStatement
            The statements of the models that it stores.
        """
        name = type(wrapper).__name__
        scores = Missing(f"scores that {name} may have made", is_certain=False)
        fits = Missing(f"fits that {name} may have made", is_certain=False)
        if is_of_sklearn(wrapper):
            scores = Missing(f"the scores of {name}")
            fits = Missing(f"the fits of {name}")
        if self._has_outer_wrapper(wrapper):
            n_scores = None
        else:
            n_scores = number_of_scores(wrapper)
        for scorer in private_scorers(wrapper):
            self._add_releases_of(scorer, wrapper, published, n_scores, scores)
        published_classes = {statement.estimator for statement in published}
        for prototype in private_prototypes(wrapper, ()):
            if type(prototype).__name__ not in published_classes:
                self._add_releases_of(prototype, wrapper, published, None, fits)

    def _has_outer_wrapper(self, wrapper):
        """Return True if another wrapper may have fitted copies of this one."""
        return any(
            not (steps_of(outer) or PlainWrapper.stores_all_fits(outer))
            for outer in self._outer
            if outer is not wrapper
        )

    def _add_releases_of(self, source, wrapper, published, number, missing):
        """Add the charges of a scorer or an unfitted estimator that a wrapper has used.

        The ledger does not record which fit made a charge. Therefore, all charges in the ledger
        with the label of the class are added, up to the published model's last charge in a search.
        Without a ledger, `number` charges are added, or `missing` if the number is None.
        """
        accountant = source.accountant
        accountant = getattr(getattr(accountant, "reservation", None), "accountant", accountant)
        label = type(source).__name__
        kind = "scores"
        if hasattr(source, "fit"):
            kind = "fits"
        name = f"the {kind} of {type(wrapper).__name__}"
        if hasattr(accountant, "report") and hasattr(accountant, "config"):
            self._add_ledger(accountant)
            config = accountant.config
            charges = accountant.report().charges
            hashes = {charge.hash for statement in published for charge in statement.charges}
            sequences = [charge.sequence for charge in charges if charge.hash in hashes]
            last = math.inf
            if sequences and PlainWrapper.of(wrapper).publishes_last:
                last = max(sequences)
            charges = tuple(c for c in charges if c.label == label and c.sequence <= last)
            if charges:
                statement = UnpublishedReleases(
                    name,
                    config.relation,
                    describe_unit(config.unit, config.max_rows, config.missing_ids),
                    describe_relation(config.relation, config.unit, config.max_rows),
                    charges,
                )
                self.unpublished.append(Release(statement))
        elif accountant is None and published and number is not None:
            first = published[0]
            for _ in range(number):
                charge = _unrecorded_charge(label, source.epsilon, source.delta)
                statement = UnpublishedReleases(
                    name, first.relation, first.unit, first.neighbors, (charge,)
                )
                self.unpublished.append(Release(statement))
        else:
            self.missing.append(missing)

    def uncovered(self):
        """Return the descriptions of the steps that learn from rows without a charge.

        Returns
        -------
        dict
            Maps the name of each step or model to a description with a remedy.
        """
        descriptions = {}
        (describe_uncovered_steps,) = _uncovered_readers
        for name, estimator in self._judged:
            for step_name, description in describe_uncovered_steps(estimator):
                full_name = name
                if step_name:
                    full_name = f"{name}: {step_name}"
                descriptions[full_name] = description
        return descriptions

    def totals(self, description):
        """Yield the total cost of all statements; see `total_costs`."""
        releases = [*self.releases, *self.unpublished]
        yield from total_costs(
            releases, self.budgets, self.configs, description, tuple(self.missing)
        )


def _unrecorded_charge(label, epsilon, delta):
    """Return a charge that is in no ledger."""
    if delta:
        event = ApproximateDP(epsilon, delta)
    else:
        event = PureDP(epsilon)
    return Charge(label, event, epsilon, delta, False, "", __version__)


def _with_inner_wrappers(wrapper, nested_estimators):
    """Return the description of a wrapper, preceded by those of the wrappers inside it.

    The number of fits is unknown if one of these runs fits that it does not store.
    """
    for _, estimator in nested_estimators:
        if hasattr(estimator, "privacy_"):
            continue
        if wrapped_estimators(estimator) and not PlainWrapper.stores_all_fits(estimator):
            publishes_last = PlainWrapper.of(estimator).publishes_last
            wrapper = replace(
                wrapper, n_fits=None, publishes_last=wrapper.publishes_last and publishes_last
            )
        wrapper = _with_inner_wrappers(wrapper, find_nested(estimator))
    return wrapper
