"""The life of a private fit: read, plan, charge, run, publish."""

from contextlib import ExitStack

import numpy as np
from sklearn import config_context

from skdp._data._shape import TableShape
from skdp._data._tables import read_array, read_target
from skdp._privacy_statement import CENTRAL, PrivacyStatement
from skdp._version import __version__
from skdp.accounting import Composed, Guarantee, Neighbours, Spend
from skdp.accounting import epsilon as event_epsilon
from skdp.accounting._report import describe_composition, describe_unit
from skdp.accounting._state import Terms
from skdp.noise import RandomSource
from skdp.utils._output import check_output_setting

__all__ = [
    "PrivateFit",
    "TableShape",
    "charge",
    "guarantee_of",
    "read_array",
    "relation_of",
    "terms_of",
]

UNACCOUNTED = Terms(1.0, 0.0)
NOTHING = Composed(())


def relation_of(accountant):
    """Return the relation that an estimator's sensitivities are for."""
    return terms_of(accountant).relation


def terms_of(accountant):
    """Return what an accountant protects, add/remove of one row without one.

    Raises
    ------
    ValueError
        If it is no accountant.
    """
    if accountant is None:
        return UNACCOUNTED
    if not hasattr(accountant, "charge"):
        raise ValueError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    return accountant.terms


def guarantee_of(estimator):
    """Return what an estimator's fit must meet, by its parameters and its accountant.

    Parameters
    ----------
    estimator : estimator
        With parameters `epsilon`, `accountant` and, if it takes one, `delta`.

    Returns
    -------
    Guarantee

    Raises
    ------
    ValueError
        If epsilon or delta is out of range.
    """
    params = estimator.get_params(deep=False)
    terms = terms_of(params["accountant"])
    neighbours = Neighbours(relation=terms.relation, unit=terms.unit, max_rows=terms.max_rows)
    return Guarantee(
        epsilon=params["epsilon"], delta=params.get("delta", 0.0), neighbours=neighbours
    )


def fitted_names(estimator):
    """Return the names of an estimator's fitted attributes, by sklearn's convention."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("__")]


def charge(estimator, mechanism):
    """Book a release and return what was booked, and the source of its noise.

    Of a transformer it is checked first that its output can be put in the container that
    scikit-learn's output setting asks for.

    Parameters
    ----------
    estimator : estimator
        With parameters `accountant` and `random_state`.
    mechanism : plan
        With `event`, `epsilon` and `delta`; and with `sparse_output` where a transformer makes
        sparse matrices.

    Returns
    -------
    spend : Spend or None
        None without an accountant.
    source : RandomSource

    Raises
    ------
    BudgetExceededError
        If the accountant refuses.
    """
    source = RandomSource(estimator.random_state)
    terms_of(estimator.accountant)
    check_output_setting(estimator, sparse=getattr(mechanism, "sparse_output", False))
    if estimator.accountant is None:
        return None, source
    spend = estimator.accountant.charge(
        mechanism.event,
        label=type(estimator).__name__,
        epsilon=mechanism.epsilon,
        delta=mechanism.delta,
        seeded=source.seeded,
    )
    return spend, source


def _unbooked(mechanism, terms):
    """Return what a release that is not charged, or not yet, would cost its unit."""
    epsilon, delta = mechanism.epsilon, mechanism.delta
    if terms.max_rows > 1:
        terms_of_event = {"relation": terms.relation, "group_size": terms.max_rows}
        epsilon = event_epsilon(mechanism.event, delta, **terms_of_event)
    return Spend("", mechanism.event, epsilon, delta, False, "", __version__)


def _composition(accountant, terms):
    """Return in words how a fit's cost adds to others."""
    if accountant is None:
        return "none"
    plan = getattr(accountant, "plan", None)
    words = describe_composition(terms.composition)
    return words if plan is None else f"{plan}; {words}"


class PrivateFit:
    """One private fit of an estimator, as a context that keeps its steps in order.

    Noise can be drawn only from the source that `charge` returns, so a release that is not in
    the ledger cannot be made. If anything fails before `publish`, the estimator is left without
    a fitted attribute; what was charged stays charged. Data are checked to be finite whatever
    scikit-learn's ``assume_finite`` says, and numpy warns of no number's size.

    Parameters
    ----------
    estimator : estimator
        With parameters `accountant` and `random_state`.

    Examples
    --------
    In an estimator's ``fit``::

        with PrivateFit(self) as fit:
            X = fit.read(X)
            shape = TableShape(n_rows=X.shape[0], n_columns=X.shape[1])
            plan = self.plan_fit(shape, fit.guarantee)
            source = fit.charge(plan)
            fit.publish(plan, public=("the bounds",), **plan.run(X, source))
    """

    def __init__(self, estimator):
        self._estimator = estimator
        self._spend = None
        self._terms = None
        self._published = False

    def __enter__(self):
        self._forget()
        self._settings = ExitStack()
        # Unchecked, one row that is not finite makes a fit fail after its charge.
        self._settings.enter_context(config_context(assume_finite=False))
        # scikit-learn's checks sum the values: no warning may tell of an overflow.
        self._settings.enter_context(np.errstate(all="ignore"))
        return self

    def __exit__(self, kind, error, traceback):
        self._settings.close()
        if not self._published:
            self._forget()
        return False

    def read(self, X, y=None):
        """Read a table of numbers, and labels or targets, each row by itself.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or dask array of shape (n_samples, n_features)
            Finite numbers.
        y : array-like of shape (n_samples,), default=None
            Labels or targets, for an estimator that needs some.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features), float64
            Not copied where no conversion is needed.
        y : ndarray of shape (n_samples,)
            Only if it was given.

        Raises
        ------
        TypeError, ValueError
            If scikit-learn would raise it.
        """
        X = read_array(self._estimator, X, dtype=np.float64)
        return X if y is None else (X, read_target(self._estimator, y, len(X)))

    @property
    def guarantee(self):
        """What the fit must meet; see `guarantee_of`."""
        return guarantee_of(self._estimator)

    def charge(self, mechanism, size=None):
        """Book the plan's event and return the source of its noise.

        Parameters
        ----------
        mechanism : plan
            With `event`, `epsilon` and `delta`. One that releases nothing is not booked.
        size : int, default=None
            How many values an additive mechanism will release together: it is asked first
            whether it can.

        Returns
        -------
        RandomSource or None
            None for a plan that releases nothing.

        Raises
        ------
        ValueError
            If epsilon is too small for that many values, or a transformer's output cannot be put
            in the container that is set.
        BudgetExceededError
            If the accountant refuses.
        """
        if size is not None:
            mechanism.check_size(size)
        if mechanism.event == NOTHING:
            return None
        self._terms = terms_of(self._estimator.accountant)
        self._spend, source = charge(self._estimator, mechanism)
        return source

    def publish(
        self, mechanism, *, public, sampler="all rows, once", trust_model=CENTRAL, **released
    ):
        """Set the fitted attributes and the privacy statement.

        Parameters
        ----------
        mechanism : mechanism
            The one that was charged.
        public : tuple of str
            What was taken to be public, in words.
        sampler : str
            Which rows went into the release, in words.
        trust_model : str
            Who sees what, in words.
        **released
            Attributes: released values and what is computed from them.
        """
        accountant = self._estimator.accountant
        terms = self._terms or terms_of(accountant)
        spend = self._spend or _unbooked(mechanism, terms)
        for name, value in released.items():
            setattr(self._estimator, name, value)
        self._estimator.privacy_ = PrivacyStatement(
            estimator=type(self._estimator).__name__,
            epsilon=spend.epsilon,
            delta=spend.delta,
            relation=terms.relation,
            unit=describe_unit(terms.unit, terms.max_rows),
            mechanism=mechanism.name,
            noise_scale=mechanism.scale,
            sensitivity=mechanism.sensitivity,
            composition=_composition(accountant, terms),
            sampler=sampler,
            public=tuple(public),
            seeded=self._estimator.random_state is not None,
            record=spend.hash,
            version=__version__,
            trust_model=trust_model,
        )
        self._published = True

    def _forget(self):
        for name in fitted_names(self._estimator):
            delattr(self._estimator, name)
