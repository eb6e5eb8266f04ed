"""The candidates of a search, whose private steps share one budget, and what it tells meanwhile."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.utils.validation import validate_data

from skdp._data._kinds import container_kinds
from skdp._data._persons import read_persons
from skdp._data._tables import indexable_table, read_target
from skdp.base import UNACCOUNTED
from skdp.ledger import plan_event
from skdp.pipeline import plan_pipeline
from skdp.pipeline._checked_fits import no_columns_named
from skdp.pipeline._forms import form_of_table
from skdp.pipeline._instances import fitted_params, with_params
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._steps import with_dense_columns
from skdp.pipeline._trial import quiet, told_by_params
from skdp.utils._chunked import form_of
from skdp.utils._limit_rows import id_column
from skdp.utils._validation import check_classes
from skdp.utils._values import FrozenValue

# What a search sets itself, from its own total.
SET_BY_SEARCH = ("epsilon", "delta", "accountant", "random_state")


@dataclass(frozen=True)
class Candidate(FrozenValue):
    """One choice of parameters.

    Parameters
    ----------
    params : dict
        From the grid.
    pipeline : skdp.pipeline.PipelinePlan
        Of a clone with these parameters and with the label set of the whole table, for any number
        of its rows.
    """

    params: dict
    pipeline: object

    def with_accountant(self, model, accountant):
        """Give the private steps of a fitted model an accountant for later fits.

        Their `verbose` is that of the user's estimator again.
        """
        handles = {step.parameter("accountant"): accountant for step in self.pipeline.steps}
        return model.set_params(**told_by_params(self.pipeline.pipe), **handles)


@dataclass(frozen=True)
class Rows(FrozenValue):
    """What fits are given.

    Parameters
    ----------
    X : table whose rows can be taken by number
    y : ndarray of shape (n_samples,)
    params : dict, default={}
        Further arguments of `fit`. One that has an entry a row is cut as the table is.
    persons : Persons, default=None
        Whose they are, where the unit is a person.
    terms : Terms
        What is protected.
    ids : ndarray of shape (n_persons,), default=None
        The id of each person, where these are the unit.
    """

    X: object
    y: np.ndarray
    params: dict = field(default_factory=dict)
    persons: object = None
    terms: object = UNACCOUNTED
    ids: object = None

    @classmethod
    def read(cls, owner, fit, X, y, groups, **params):
        """Return what users gave to its private fit so that rows can be taken of it."""
        X = indexable_table(X)
        y = read_target(owner, y, X.shape[0])
        if not len(y):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        fit.n_units(groups, len(y))
        persons = fit.shared.get("persons")
        ids = persons and persons.one_each(id_column(groups))
        return cls(X, y, params, persons, fit.terms, ids)

    # The number of columns, None if there are none.
    @property
    def n_columns(self):
        return next(filter(None, self.X.shape[1:2]), None)

    @cached_property
    def columns(self):
        """What the container says of its columns: their `names` and `kinds`."""
        if len(self.X.shape) != 2:
            return {"names": None, "kinds": None}
        reader = BaseEstimator()
        validate_data(reader, form_of(self.X), skip_check_array=True)
        names = getattr(reader, "feature_names_in_", None)
        return {"names": names, "kinds": container_kinds(self.X)}

    # The number of rows; of persons, where these are the unit.
    @property
    def n_units(self):
        return len(self.y) if self.persons is None else self.persons.n_persons

    # What scores take beside rows: `persons`, where these are the unit.
    @property
    def shared(self):
        return {} if self.persons is None else {"persons": self.persons}

    def take(self, units):
        """Return some rows, or all rows of some persons, by number."""
        rows = units
        persons = None
        if self.persons is not None:
            rows = self.persons.rows_of(units)
            persons = read_persons(self.persons.codes[rows], len(rows))

        def cut(value):
            has_rows = hasattr(value, "shape") or isinstance(value, list | tuple)
            if has_rows and np.shape(value)[:1] == (len(self.y),):
                return _take(indexable_table(value), rows)
            return value

        params = {name: cut(value) for name, value in self.params.items()}
        return replace(self, X=_take(self.X, rows), y=self.y[rows], params=params, persons=persons)

    def fit(self, model):
        """Fit a model to the rows and return it."""
        if self.persons is None:
            with no_columns_named():
                return model.fit(self.X, self.y, **self.params)
        # Steps are given groups in this way alone.
        with config_context(enable_metadata_routing=True), no_columns_named():
            return model.fit(self.X, self.y, groups=self.persons.codes, **self.params)


def _take(table, rows):
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


@dataclass(frozen=True)
class FitPlan(FrozenValue):
    """What one fit of a candidate will charge, step by step.

    Parameters
    ----------
    pipeline : skdp.pipeline.PipelinePlan
    guarantee : Guarantee
        What the steps share.
    """

    pipeline: object
    guarantee: object

    @cached_property
    def charges(self):
        """A tuple of PlannedCharge."""
        return self.pipeline.charges(self.guarantee.epsilon, self.guarantee.delta)

    # What the fit costs.
    @property
    def event(self):
        return plan_event(self.charges)

    def model(self, allow):
        """Return what is to be fitted; `allow` makes an allowance of a planned charge."""
        budget = self.guarantee.epsilon, self.guarantee.delta
        return quiet(self.pipeline.with_budget(*budget, list(map(allow, self.charges))))

    def fitted(self, rows, allow, seeds):
        """Fit on paid allowances, one for each private step.

        Parameters
        ----------
        rows : Rows
        allow : callable
            Makes an allowance of a planned charge.
        seeds : dict
            One for each private step, or None, by the name of its parameter.

        Returns
        -------
        estimator
        """
        return rows.fit(self.model(allow).set_params(**seeds))


def make_candidate(estimator, params, rows, public_steps=(), accountant=None):
    """Return a candidate that knows all labels.

    Parameters
    ----------
    estimator : estimator
    params : dict
    rows : Rows
        All of them.
    public_steps : tuple of str
    accountant : PrivacyAccountant or None
        The only one that the estimator may have.

    Raises
    ------
    ValueError
        If the search sets a parameter itself, a step would learn from the data without privacy,
        or has an accountant that would not be charged, a step would refuse a parameter or the
        target, or y holds fewer than two labels, or one that is not declared.
    """
    for name in params:
        if name.rpartition("__")[2] in SET_BY_SEARCH:
            raise ValueError(
                f"{name!r} cannot be searched over: the search sets {', '.join(SET_BY_SEARCH)} of "
                "every fit, from its own total"
            )
    model = with_dense_columns(with_params(estimator, params), public_steps)
    known = {"terms": rows.terms, "columns": rows.columns, "public_steps": public_steps}
    planned = plan_pipeline(model, None, rows.n_columns, **known)
    for step in planned.steps:
        for name, own in fitted_params(step.estimator, "accountant").items():
            if own is not None and own is not accountant:
                raise ValueError(
                    f"step {step.title!r} has an accountant of its own, which would not be "
                    "charged: everything is charged at once, to the accountant that is given "
                    "beside the estimator"
                )
            model.set_params(**{step.parameter(name): None})
    form = replace(form_of_table(rows.X), n_rows=rows.n_units, n_columns=rows.n_columns)
    check_parameters(model, PublicTable(form=form, has_target=True, y=rows.y))
    classes = None
    if is_classifier(model):
        declared = {
            step.parameter(name): classes
            for step in planned.steps
            for name, classes in fitted_params(step.estimator, "classes").items()
        }
        known = [classes for classes in declared.values() if classes is not None]
        classes, _ = check_classes(known[-1] if known else None, rows.y)
        model.set_params(**{name: classes for name, value in declared.items() if value is None})
    return Candidate(params, replace(planned, pipe=clone(model), classes=classes))
