"""Candidates of a search, the rows that they are fitted to, and the plan of one fit."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import validate_data

from skdp._data._chunked import meta_of
from skdp._data._classes import check_classes
from skdp._data._frames import take_rows, with_plain_names
from skdp._data._kinds import container_kinds
from skdp._data._limit_rows import id_column
from skdp._data._persons import read_persons
from skdp._data._tables import indexable_table, read_target
from skdp.base import DEFAULT_CONFIG
from skdp.ledger import plan_event
from skdp.pipeline import plan_pipeline
from skdp.pipeline._checked_fits import no_columns_named
from skdp.pipeline._forms import form_of_table
from skdp.pipeline._instances import fitted_params, with_params
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._steps import with_dense_columns
from skdp.pipeline._trial import strip_callbacks, verbose_params
from skdp.utils._validation import check_is_estimator
from skdp.utils._values import FrozenValue

# Parameters that a search derives from its total budget and sets in every fit.
SET_BY_SEARCH = ("epsilon", "delta", "accountant", "random_state")


@dataclass(frozen=True)
class Candidate(FrozenValue):
    """One combination of parameters and its planned pipeline.

    Parameters
    ----------
    params : dict
        One element of the grid.
    pipeline : skdp.pipeline.PipelinePlan
        Plan of a clone with these parameters and with the label set of the whole table. It holds
        for any number of rows.
    """

    params: dict
    pipeline: object

    def with_accountant(self, model, accountant):
        """Return a fitted model whose private steps charge an accountant in later fits.

        The values of `verbose` in the user's estimator are restored.
        """
        params = verbose_params(self.pipeline.pipe)
        for step in self.pipeline.steps:
            params[step.parameter("accountant")] = accountant
        return model.set_params(**params)


@dataclass(frozen=True)
class Rows(FrozenValue):
    """Arguments of `fit`: a table, its target and metadata.

    Parameters
    ----------
    X : table that can be indexed by row number
    y : ndarray of shape (n_samples,)
    params : dict, default={}
        Further arguments of `fit`. Those with one entry per row are indexed like the table.
    persons : Persons, default=None
        Person of each row, if the privacy unit is a person.
    terms : LedgerConfig
        Relation and privacy unit of the accountant.
    ids : ndarray of shape (n_persons,), default=None
        Id of each person, if the privacy unit is a person.
    """

    X: object
    y: np.ndarray
    params: dict = field(default_factory=dict)
    persons: object = None
    terms: object = DEFAULT_CONFIG
    ids: object = None

    @classmethod
    def read(cls, owner, fit, X, y, groups, **params):
        """Return the arguments of a private fit in forms that can be indexed by row."""
        X = indexable_table(X)
        y = read_target(owner, y, X.shape[0])
        fit.read_groups(groups, len(y))
        persons = fit.run_params.get("persons")
        if persons is None:
            ids = None
        else:
            ids = persons.first_entries(id_column(groups))
        return cls(X, y, params, persons, fit.terms, ids)

    @property
    def n_columns(self):
        """Number of columns, None for rows of one value, such as texts."""
        if len(self.X.shape) < 2:
            return None
        return self.X.shape[1]

    @cached_property
    def columns(self):
        """Dict with the `names` and the `kinds` (dtype families) of the columns."""
        if len(self.X.shape) != 2:
            return {"names": None, "kinds": None}
        reader = BaseEstimator()
        validate_data(reader, with_plain_names(meta_of(self.X)), skip_check_array=True)
        names = getattr(reader, "feature_names_in_", None)
        return {"names": names, "kinds": container_kinds(self.X)}

    @property
    def n_units(self):
        """Number of rows, or of persons if the privacy unit is a person."""
        if self.persons is None:
            return len(self.y)
        return self.persons.n_persons

    @property
    def score_params(self):
        """Keyword arguments of a score's `value` and `check`: `persons` if persons are the unit."""
        if self.persons is None:
            return {}
        return {"persons": self.persons}

    def take(self, units):
        """Return the given rows, or all rows of the given persons, by number."""
        rows = units
        persons = None
        if self.persons is not None:
            rows = self.persons.rows_of(units)
            persons = read_persons(self.persons.codes[rows], len(rows))

        def index_rows(value):
            """Return the selected rows of an argument with one entry per row; others unchanged."""
            has_rows = hasattr(value, "shape") or isinstance(value, list | tuple)
            if has_rows and np.shape(value)[:1] == (len(self.y),):
                return take_rows(indexable_table(value), rows)
            return value

        params = {name: index_rows(value) for name, value in self.params.items()}
        return replace(
            self, X=take_rows(self.X, rows), y=self.y[rows], params=params, persons=persons
        )

    @property
    def fit_params(self):
        """Keyword arguments of a candidate's fit, with `groups` if persons are the unit."""
        if self.persons is None:
            return self.params
        return {"groups": self.persons.codes} | self.params

    def routing(self):
        """Return the context of a candidate's fit."""
        # Steps of a pipeline receive groups only by metadata routing.
        if self.persons is None:
            return nullcontext()
        return config_context(enable_metadata_routing=True)

    def fit(self, model):
        """Fit a model to the rows and return it."""
        with self.routing(), no_columns_named():
            return model.fit(self.X, self.y, **self.fit_params)


@dataclass(frozen=True)
class CandidateFit(FrozenValue):
    """The charges of one fit of a candidate, step by step.

    Parameters
    ----------
    pipeline : skdp.pipeline.PipelinePlan
    guarantee : Guarantee
        Budget that the private steps share.
    """

    pipeline: object
    guarantee: object

    @cached_property
    def charges(self):
        """Tuple with a `PlannedCharge` for each private step."""
        return self.pipeline.charges(self.guarantee.epsilon, self.guarantee.delta)

    @property
    def event(self):
        """Event of the whole fit: its privacy cost."""
        return plan_event(self.charges)

    def model(self, allow):
        """Return the estimator to be fitted; `allow` turns a planned charge into an allowance."""
        allowances = [allow(charge) for charge in self.charges]
        budget = self.guarantee
        return strip_callbacks(self.pipeline.with_budget(budget.epsilon, budget.delta, allowances))

    def fitted(self, rows, allow, seeds):
        """Return the fitted estimator; each private step uses an allowance that is already charged.

        Parameters
        ----------
        rows : Rows
        allow : callable
            Turns a planned charge into an allowance.
        seeds : dict
            Seed (or None) of each private step, by the name of its `random_state` parameter.

        Returns
        -------
        estimator
        """
        return rows.fit(self.model(allow).set_params(**seeds))


def labels_of_candidate(model, y):
    """Return the label set of a candidate, for checks before the charge; None if it is a regressor.

    These are the last declared `classes` among the parameters of a pipeline's steps. If there are
    none, they are the labels of y, as in a fit.
    """
    if not is_classifier(model):
        return None
    declared = [
        classes for classes in fitted_params(model, "classes").values() if classes is not None
    ]
    return check_classes(declared[-1] if declared else None, y)[0]


def check_searched(params):
    """Raise `ValueError` if a candidate sets a parameter of the search, or sets one to a class."""
    for name, value in params.items():
        if isinstance(value, type) and hasattr(value, "get_params"):
            raise ValueError(
                f"{name} is the class {value.__name__} in a candidate; pass an estimator, "
                f"{value.__name__}()"
            )
        if name.rpartition("__")[2] in SET_BY_SEARCH:
            raise ValueError(
                f"{name!r} cannot be searched over: the search sets {', '.join(SET_BY_SEARCH)} of "
                "every fit, from its total budget. Remove it from the grid"
            )


def check_accountants(model, accountant):
    """Raise `ValueError` if a step of a candidate has a different accountant from the search."""
    for name, step_accountant in fitted_params(model, "accountant").items():
        if step_accountant is not None and step_accountant is not accountant:
            raise ValueError(
                f"{name} is a separate accountant, which would not be charged. Pass it as the "
                "accountant of the search, which makes one charge for everything"
            )


def make_candidate(estimator, params, rows, public_steps=(), accountant=None):
    """Return a candidate whose classifiers have the label set of all rows.

    Parameters
    ----------
    estimator : estimator
    params : dict
    rows : Rows
        All rows of the search.
    public_steps : tuple of str
    accountant : PrivacyAccountant or None
        The accountant of the search; steps must not have another accountant.

    Raises
    ------
    ValueError
        If the grid sets a parameter that the search sets; if a step would learn from the data
        without privacy, has another accountant, or refuses a parameter or the target; or if y has
        fewer than two labels or an undeclared one.
    """
    check_searched(params)
    check_is_estimator(estimator, "estimator")
    if isinstance(estimator, FrozenEstimator):
        raise ValueError(
            "estimator is a FrozenEstimator, which is never fitted again, so there is nothing to "
            "fit or to choose: score it with dp_evaluate, or pass the estimator inside it"
        )
    model = with_dense_columns(with_params(estimator, params), public_steps)
    plan = plan_pipeline(
        model,
        None,
        rows.n_columns,
        terms=rows.terms,
        columns=rows.columns,
        public_steps=public_steps,
    )
    for step in plan.steps:
        for name, step_accountant in fitted_params(step.estimator, "accountant").items():
            if step_accountant is not None and step_accountant is not accountant:
                raise ValueError(
                    f"step {step.title!r} has a separate accountant, which would not be charged. "
                    "Pass it as the accountant of the search, which makes one charge for "
                    "everything"
                )
            model.set_params(**{step.parameter(name): None})
    form = replace(form_of_table(rows.X), n_rows=rows.n_units, n_columns=rows.n_columns)
    check_parameters(model, PublicTable(form=form, has_target=True, y=rows.y))
    classes = None
    if is_classifier(model):
        declared = {}
        for step in plan.steps:
            for name, step_classes in fitted_params(step.estimator, "classes").items():
                declared[step.parameter(name)] = step_classes
        last_declared = None
        for step_classes in declared.values():
            if step_classes is not None:
                last_declared = step_classes
        classes, _ = check_classes(last_declared, rows.y)
        model.set_params(**{name: classes for name, value in declared.items() if value is None})
    return Candidate(params, replace(plan, pipe=clone(model), classes=classes))
