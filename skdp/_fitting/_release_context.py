"""Context of one private release: its configuration, its charge and the source of its noise."""

import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn import config_context

from skdp._data._dask import Run
from skdp._data._persons import read_persons
from skdp._fitting._call_stack import is_outside_of_tools
from skdp._fitting._callers import check_callers
from skdp._fitting._findings import collect_findings, warn_of_findings
from skdp._fitting._tool_rules import NamedRelease
from skdp.accounting import Composed, Guarantee
from skdp.ledger._terms import terms_of
from skdp.noise import NoiseGuard, RandomSource
from skdp.noise._source import check_seed, is_inside_release

# Event of a plan that releases nothing, such as a plan of declared bounds. It is not charged.
EMPTY_EVENT = Composed(())


GROUPS_MISSING = (
    "groups are missing, but the accountant's unit is a person: pass groups, the person id of each "
    "row. A Pipeline or ColumnTransformer passes them on after "
    "sklearn.set_config(enable_metadata_routing=True)"
)
GROUPS_WITHOUT_PERSON_UNIT = (
    "groups were passed, so the privacy unit is a person, but the accountant's unit is a "
    "{unit}: open a ledger with unit='person', or leave groups out"
)


def relation_of(accountant):
    """Return the neighboring relation of an accountant, "add_remove" if it is None."""
    return terms_of(accountant).relation


def raw_data_policy(config):
    """Return "warn" or "raise", the reaction to a tool that computes on the raw rows."""
    return getattr(config, "on_raw_data", "warn")


def neighbors_of(accountant):
    """Return the neighboring datasets of the guarantee of a fit with an accountant or None."""
    return guarantee_under(accountant, terms_of(accountant), 1.0, 0.0).neighbors


def guarantee_under(accountant, config, epsilon, delta):
    """Return the guarantee that a release must meet under a configuration of an accountant.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        For a step of a planned pipeline, neighboring datasets differ by one row, because the plan's
        cost already covers a group of rows.
    config : LedgerConfig
        The accountant's configuration.
    epsilon, delta : float
        The budget of the release.

    Returns
    -------
    Guarantee
        It prefers Gaussian releases if only they compose without loss. Composition by Gaussian
        differential privacy charges the exponential mechanism as a pure release. The noise of
        Gaussian releases is proportional to the size of a group of rows; that of other releases
        grows faster. Fits within a search or a pipeline are planned for one row.
    """
    neighbors = config.neighbors
    if hasattr(accountant, "planned"):
        neighbors = neighbors.per_row
    return Guarantee(
        epsilon=epsilon,
        delta=delta,
        neighbors=neighbors,
        prefers_gaussian=config.composition == "gdp" or neighbors.max_rows > 1,
    )


def guarantee_of(estimator):
    """Return the guarantee that a fit of an estimator must meet.

    Parameters
    ----------
    estimator : estimator
        Estimator with the parameters `epsilon` and `accountant`. Without a parameter `delta`, delta
        is 0.

    Returns
    -------
    Guarantee

    Raises
    ------
    ValueError
        If epsilon or delta is out of range.
    """
    params = estimator.get_params(deep=False)
    accountant = params["accountant"]
    config = terms_of(accountant)
    return guarantee_under(accountant, config, params["epsilon"], params.get("delta", 0.0))


def private_release(label, accountant=None, random_state=None, *, are_callers_checked=False):
    """Return the context of one private release that is not the fit of an estimator.

    Parameters
    ----------
    label : str
        Name of the release, for the ledger.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged. If None, nothing is recorded.
    random_state : int or None, default=None
        Seed of the noise; None draws the noise from the operating system's generator.
    are_callers_checked : bool, default=False
        True if the caller has checked the tools around the release, as a private score does.

    Returns
    -------
    PrivateRelease

    Raises
    ------
    ValueError
        When the context is entered, if a tool around the release repeats rows, or if it computes on
        raw rows and the accountant was opened with ``on_raw_data="raise"``.

    Warns
    -----
    RawDataWarning
        When the context is entered, if a tool around the release computes on raw rows.

    Examples
    --------
    >>> from skdp.base import private_release
    >>> from skdp.mechanisms import LaplaceMechanism
    >>> mechanism = LaplaceMechanism(epsilon=1.0, sensitivity=1.0)
    >>> with private_release("a sum") as release:
    ...     source = release.charge(mechanism)
    ...     noisy = mechanism.release(17.0, random_state=source)
    """
    return PrivateRelease(
        label=label,
        accountant=accountant,
        random_state=random_state,
        are_callers_checked=are_callers_checked,
    )


class PrivateRelease:
    """Context of one charge and of the noise that is added for it; see `private_release`.

    Inside it, noise can be drawn only from the source that `charge` returns, so no release can
    bypass the ledger. A second charge raises an error. Data are checked to be finite regardless of
    scikit-learn's ``assume_finite``, and NumPy's warnings, which may reveal the size of a value,
    are suppressed.

    Parameters
    ----------
    label : str
        Name of the estimator or function, for the ledger.
    accountant : PrivacyAccountant or None
        The accountant that is charged.
    random_state : int or None
        Seed of the noise; None draws the noise from the operating system's generator.
    are_callers_checked : bool, default=False
        True if the tools around the release were already checked and are not checked again.
    """

    # True if the context begins a run of dask; see `Run`.
    _begins_run = True

    def __init__(self, *, label, accountant, random_state, are_callers_checked=False):
        self._are_callers_checked = are_callers_checked
        self._label = label
        self._accountant = accountant
        self._random_state = random_state
        # True once a charge was attempted, whether or not the accountant accepted it.
        self._is_charge_tried = False
        self._is_charged = False
        # True if the plan releases nothing, so that there is no entry in the ledger.
        self._is_free = False
        # Names of the table's columns, for warnings.
        self._column_names = None
        # True if noisy values may have been returned to the user.
        self._is_released = False
        # Arguments of a plan's `run` besides rows and noise: `persons`, if the unit is a person.
        self.run_params = {}
        # The guarantee of the whole group, if the unit is a group of rows.
        self._group_guarantee = None
        self.ledger_entry = None

    def __enter__(self):
        # Configuration of the accountant; `read_groups` makes a person its unit. `_open_config`
        # refuses a closed data set before its rows are read. A class instead of an accountant
        # is refused by `terms_of`.
        accountant = self._accountant
        if hasattr(accountant, "_open_config") and not isinstance(accountant, type):
            self.terms = accountant._open_config()
        else:
            self.terms = terms_of(accountant)
        # A tool that sets seeds may have set a generator; the error then names the tool.
        self._check_callers()
        # This check also runs if no noise will be drawn, because a wrong parameter is refused for
        # every table.
        check_seed(self._random_state)
        with ExitStack() as settings:
            # Without this check, a single row that is not finite would make a fit fail after its
            # charge.
            settings.enter_context(config_context(assume_finite=False))
            # scikit-learn's checks sum the values, and a warning would reveal an overflow.
            settings.enter_context(np.errstate(all="ignore"))
            self._noise_guard = settings.enter_context(NoiseGuard())
            if self._begins_run:
                settings.enter_context(Run())
            self._findings = settings.enter_context(collect_findings())
            self._settings = settings.pop_all()
        return self

    def __exit__(self, kind, error, traceback):
        self._settings.__exit__(kind, error, traceback)
        # Warnings come last, so that the released values are not lost if one is turned into an
        # error.
        if kind is None and self._is_released and self._findings:
            warn_of_findings(self._label, self._findings, self._column_names)

    def _check_callers(self):
        """Raise or warn if a tool around the release computes on raw rows; before the charge."""
        # The tools around an outer release, or around a private score, were checked earlier.
        if is_inside_release() or self._are_callers_checked:
            return
        if not is_outside_of_tools(sys._getframe(1)):
            check_callers(
                NamedRelease(self._label, self.terms.unit), partial(raw_data_policy, self.terms)
            )

    def cost_of(self, plan):
        """Return the plan or guarantee whose `epsilon` and `delta` are charged for the plan.

        A plan for a group of rows states the epsilon of one row. The group's epsilon is charged.
        """
        if plan.event == EMPTY_EVENT or self._group_guarantee is None:
            return plan
        return self._group_guarantee

    def can_charge(self, plan):
        """Return False if the budget does not cover a plan now, so that `charge` would raise."""
        if plan.event == EMPTY_EVENT or not hasattr(self._accountant, "can_afford"):
            return True
        cost = self.cost_of(plan)
        return self._accountant.can_afford(plan.event, epsilon=cost.epsilon, delta=cost.delta)

    def make_guarantee(self, epsilon, delta):
        """Return the `Guarantee` for the privacy unit of the next charge."""
        guarantee = guarantee_under(self._accountant, self.terms, epsilon, delta)
        if guarantee.neighbors.max_rows > 1:
            self._group_guarantee = guarantee
        else:
            self._group_guarantee = None
        return guarantee

    def read_groups(self, groups, n_rows):
        """Read the person id of each row and return the number of privacy units.

        Parameters
        ----------
        groups : array-like of shape (n_rows,) or None
            None keeps the row as the unit.
        n_rows : int

        Returns
        -------
        int
            The number of rows or, with `groups`, of persons.

        Raises
        ------
        ValueError
            If the accountant's unit is not a person, or `groups` are not valid ids.
        """
        if groups is None:
            return n_rows
        unit = self.terms.unit
        if self._accountant is not None and unit != "person":
            raise ValueError(GROUPS_WITHOUT_PERSON_UNIT.format(unit=unit))
        persons = read_persons(groups, n_rows, self.terms.missing_ids)
        self.terms = replace(self.terms, unit="person")
        self.run_params = {"persons": persons}
        return persons.n_persons

    def check_plan(self, plan):
        """Raise `ValueError`, before the charge, if a plan cannot be run or published."""
        if self.terms.unit != "person":
            return
        if not self.run_params:
            raise ValueError(GROUPS_MISSING)
        if not getattr(plan, "by_person", False):
            raise ValueError(
                f"{self._label} with these parameters has no release whose unit is a person: "
                "leave groups out, and use an accountant with unit='row' or unit='group'"
            )

    def run_charged(self, plan, rows, source):
        """Return the result of a plan's `run`, after its charge.

        Parameters
        ----------
        plan : Plan
        rows : object
            First argument of the plan's `run`.
        source : RandomSource
            The result of `charge`.
        """
        return plan.run(rows, source, **self.run_params)

    def charge(self, plan, size=None):
        """Charge the plan's event and return the source of its noise.

        Parameters
        ----------
        plan : Plan
            It has `event`, `epsilon` and `delta`. A plan that releases nothing is not charged.
        size : int, default=None
            Number of values that an additive mechanism will release together. If passed, the plan
            is first checked to support this number.

        Returns
        -------
        RandomSource or None
            None for a plan that releases nothing.

        Raises
        ------
        RuntimeError
            If a charge was already made or refused.
        ValueError
            If epsilon is too small for this number of values, a transformer's output does not fit
            into the configured container, or the plan does not support persons.
        BudgetExceededError
            If the budget does not cover the charge.
        """
        if self._is_charge_tried:
            raise RuntimeError(
                "a private fit charges once: combine its releases in one plan "
                "(skdp.mechanisms.JointMechanism)"
            )
        if size is not None:
            plan.check_size(size)
        self.check_plan(plan)
        self._is_charge_tried = True
        if plan.event == EMPTY_EVENT:
            self._is_charged = self._is_free = self._is_released = True
            return None
        source = RandomSource(self._random_state)
        if self._accountant is not None:
            cost = self.cost_of(plan)
            self.ledger_entry = self._accountant.charge(
                plan.event,
                epsilon=cost.epsilon,
                delta=cost.delta,
                label=self._label,
                seeded=source.seeded,
            )
        self._is_charged = True
        self._is_released = True
        self._noise_guard.source = source
        return source
