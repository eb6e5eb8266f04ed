"""Base class of hyperparameter searches: one charge for all fits, the scores and the choice."""

from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._data._classes import DECLARED_CLASSES
from skdp._data._limit_rows import id_column
from skdp._data._persons import read_persons
from skdp._data._tables import target_array
from skdp._fitting._fit_context import data_sets_of, ledger_of
from skdp._fitting._fit_progress import FitProgress
from skdp._reports._line import PrivacyLineMixin
from skdp._reports._nested_models import find_nested
from skdp.accounting import Guarantee
from skdp.base import PrivateEstimator, PrivateFit, private_fit_method, terms_of
from skdp.mechanisms._stages import sampler_of
from skdp.model_selection._candidates import (
    Rows,
    check_accountants,
    check_searched,
    labels_of_candidate,
    make_candidate,
)
from skdp.model_selection._plans import SELECTIONS, SearchTask
from skdp.model_selection._runs import SearchRun, run_search
from skdp.model_selection._scores import default_score
from skdp.model_selection._splits import check_cv, check_not_iterator
from skdp.model_selection._strategies import STRATEGIES, plan_layout, plan_search
from skdp.pipeline._instances import is_estimator
from skdp.pipeline._selectable import check_selectable
from skdp.pipeline._steps import check_step_names
from skdp.utils._documents import count_of
from skdp.utils._units import UnitText, for_unit
from skdp.utils._validation import check_boolean, check_choice, check_integer, check_n_jobs
from skdp.utils._values import FrozenValue

# Widths that are tried if a strategy depends on the table's width and the width is unknown.
POSSIBLE_WIDTHS = (1, 10, 100, 1_000, 100_000)
# Description of each strategy, for the printed line and for the privacy statement.
STRATEGY_TEXTS = {
    "disjoint": UnitText(
        lambda unit: f"each candidate on a separate part, compared on held-out {unit}s"
    ),
    "holdout": UnitText(
        lambda unit: f"all candidates on the training {unit}s, compared on held-out {unit}s"
    ),
    "cv": "all candidates on all splits",
    "histogram": UnitText(
        lambda unit: f"the model on training {unit}s, its scores counted on other {unit}s"
    ),
    "random_stopping": UnitText(
        lambda unit: (
            "a secret random number of runs, each of a candidate drawn at random, on the "
            f"training {unit}s, compared on held-out {unit}s"
        )
    ),
}


def describe_rows_of_search(search):
    """Return a description of the rows that the stages of a search read, from its splits.

    Parameters
    ----------
    search : SearchFit

    Returns
    -------
    UnitText
    """
    memberships = search.layout.splits.describe(is_part=search.strategy == "disjoint")

    def write(unit):
        """Return the description for a privacy unit, "row" or "person"."""
        texts = [for_unit(STRATEGY_TEXTS[search.strategy], unit), for_unit(memberships, unit)]
        if search.refits:
            refitted = "the chosen candidate"
            if search.choice is None and search.mean_runs is None:
                refitted = "the model"
            texts.append(f"then {refitted} on all {unit}s")
        return "; ".join(texts)

    return UnitText(write)


def make_task(
    estimator,
    grid,
    rows,
    guarantee,
    *,
    accountant,
    scoring,
    public_steps,
    make_score=default_score,
    selection="exponential",
    refit=False,
):
    """Return the `SearchTask` of a search, after its candidates were checked against the rows.

    Parameters
    ----------
    estimator : estimator
    grid : iterable of dict
        The parameters of each candidate.
    rows : Rows
    guarantee : Guarantee
        Budget of the whole search.
    accountant, scoring, public_steps
        Parameters of the search, see `DPGridSearchCV`.
    make_score : callable, default=default_score
        Returns the score for `scoring` and the pipeline of the first candidate.
    selection : str, default="exponential"
    refit : bool, default=False
        Fields of the `SearchTask`.

    Raises
    ------
    ValueError
        If there are no candidates, a candidate cannot be planned or scored, or rows cannot be read.
    """
    public_steps = check_step_names(public_steps)
    candidates = tuple(
        make_candidate(estimator, params, rows, public_steps, accountant) for params in grid
    )
    if not candidates:
        raise ValueError("param_grid is empty: give at least one combination of parameters")
    score = make_score(scoring, candidates[0].pipeline.pipe)
    for candidate in candidates:
        score.check(candidate.pipeline.pipe, candidate.pipeline.classes, rows.persons)
    return SearchTask(
        candidates=candidates,
        shape=(rows.n_units, rows.n_columns),
        score=score,
        guarantee=guarantee.per_row,
        public_steps=public_steps,
        selection=selection,
        refit=refit,
    )


def _check_may_publish(search, method="score"):
    """Return True, or raise `AttributeError` if a search publishes no model.

    Tools and scores look for the methods that they need before the charge.
    """
    if not hasattr(search, "best_estimator_") and search.may_publish_no_model:
        raise _no_model(method)
    return True


def _delegate_to_best_estimator(name):
    """Return a method that calls the published model's method, if that model has it."""

    def has_method(search):
        """Return True; raise `AttributeError` if the published model lacks the method."""
        _check_may_publish(search, name)
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    def call(self, X):
        return getattr(self._check_published(name), name)(X)

    call.__name__ = name
    call.__qualname__ = f"BasePrivateSearch.{name}"
    call.__doc__ = f"Call `{name}` of the published model."
    return available_if(has_method)(call)


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicUnits(FrozenValue):
    """The rows, or persons, that a search will split, if they are known before the charge.

    Parameters
    ----------
    n_units : int or None
        Number of rows, or of persons. None if it is unknown.
    are_persons : bool
        True if the accountant's unit is a person.
    persons : Persons or None
        None without `groups`.
    ids : ndarray of shape (n_persons,) or None
        Id of each person. None without `groups`.
    """

    n_units: int | None
    are_persons: bool
    persons: object
    ids: object

    @classmethod
    def of_table(cls, table, terms):
        """Return the units of a `PublicTable`, under an accountant's terms."""
        are_persons = terms.unit == "person"
        if table.groups is None:
            n_units = table.form.n_rows
            return cls(n_units=n_units, are_persons=are_persons, persons=None, ids=None)
        column = id_column(table.groups)
        persons = read_persons(column, len(column), terms.missing_ids)
        return cls(
            n_units=persons.n_persons,
            are_persons=are_persons,
            persons=persons,
            ids=persons.first_entries(column),
        )

    @property
    def are_known(self):
        """True if folds can be made: the units are counted, and persons have ids."""
        return self.n_units is not None and self.are_persons == (self.ids is not None)


class BasePrivateSearch(PrivacyLineMixin, MetaEstimatorMixin, PrivateEstimator):
    """Base class of searches over a public list of candidates, charged once.

    Subclasses return the parameters of the candidates from ``_candidate_params()``.
    """

    @private_fit_method
    def fit(self, X, y, *, groups=None, **params):
        """Charge the whole search, run it and publish the chosen candidate.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows, in any form that the estimator accepts.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, regardless of the number of
            rows, and each row has weight 1 / (number of rows of that person); see
            ``docs/theory/persons.md``. Requires an accountant with unit="person", or none.
        **params : dict
            Passed to the `fit` of the estimator and, if metadata routing is enabled, routed as in
            scikit-learn.

        Returns
        -------
        self : estimator
            The fitted search.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the remaining budget does not cover the whole search; nothing was fitted.
        """
        n_stages = 1 + check_boolean(self.refit, "refit")
        with PrivateFit(self, FitProgress(self, n_stages)) as fit:
            run = self._read_plan_and_charge(fit, X, y, groups, params)
            if self.verbose:
                description = STRATEGY_TEXTS[run.search.strategy]
                n_candidates = len(run.search.task.candidates)
                candidates = count_of(n_candidates, "candidate")
                print(f"{type(self).__name__}: {candidates}, {description}")
            self._publish(fit, run.search, run_search(run, fit.progress))
        return self

    def _check_parameters(self):
        """Raise `ValueError` for parameters of the search that no table could make valid."""
        check_choice(self.strategy, "strategy", ("auto", *STRATEGIES))
        check_choice(self.selection, "selection", SELECTIONS)
        check_boolean(self.refit, "refit")
        if self.mean_runs is not None:
            check_integer(self.mean_runs, "mean_runs", 1)
        check_integer(self.verbose, "verbose", 0)
        check_n_jobs(self.n_jobs)
        if not is_estimator(self.estimator):
            raise ValueError(f"estimator must be an estimator, got {self.estimator!r}")

    def _check_score_and_splits(self, candidates, table, n_columns):
        """Raise `ValueError` if candidates cannot be scored, or the rows cannot be split.

        A pipeline calls this before its first charge, with the known facts about the rows of the
        search.

        Parameters
        ----------
        candidates : list of estimator
        table : PublicTable
        n_columns : int or None
        """
        check_not_iterator(self.cv)
        if not candidates:
            raise ValueError("param_grid is empty: give at least one combination of parameters")
        for params in self._candidate_params():
            check_searched(params)
        for candidate in candidates:
            check_accountants(candidate, self.accountant)
        score = default_score(self.scoring, candidates[0])
        terms = terms_of(self.accountant)
        units = PublicUnits.of_table(table, terms)
        persons = units.persons
        for candidate in candidates:
            if table.has_target and table.y is not None:
                classes = labels_of_candidate(candidate, target_array(table.y))
                score.check(candidate, classes, persons)
            else:
                score.check_methods(candidate, persons)
        if not units.are_known:
            check_cv(self.cv, units.are_persons)
            return
        guarantee = Guarantee(epsilon=self.epsilon, delta=self.delta)
        # If the number of columns is unknown, the strategy may also be unknown.
        for width in POSSIBLE_WIDTHS if n_columns is None else (n_columns,):
            task = SearchTask(
                candidates=tuple(candidates),
                shape=(units.n_units, width),
                score=score,
                guarantee=guarantee,
                refit=self.refit,
            )
            plan_layout(task, self.strategy, self.cv, units.ids, terms.composition)

    def _read_plan_and_charge(self, fit, X, y, groups, params):
        """Do everything that precedes the first fit, and return the charged `SearchRun`."""
        self._check_parameters()
        check_selectable(self.estimator, X)
        rows = Rows.read(self, fit, X, y, groups, **self._routed(params))
        task = make_task(
            self.estimator,
            self._candidate_params(),
            rows,
            fit.guarantee,
            accountant=self.accountant,
            scoring=self.scoring,
            public_steps=self.public_steps,
            selection=self.selection,
            refit=self.refit,
        )
        composition = rows.terms.composition
        search = plan_search(task, self.strategy, self.cv, rows.ids, self.mean_runs, composition)
        return SearchRun.charge_search(search, rows, self.n_jobs, fit)

    def _dry_run(self, X, y=None, groups=None, *, n_units, **params):
        """Run a fit up to its charge, in order to raise its errors."""
        with PrivateFit(self) as fit:
            self._read_plan_and_charge(fit, X, y, groups, params)

    def cost(self):
        """Return the privacy cost of the whole search, including the final model.

        Returns
        -------
        epsilon, delta : float
            For the accountant's unit: a row, or a person.
        """
        if hasattr(self, "privacy_"):
            return self.privacy_.epsilon, self.privacy_.delta
        guarantee = Guarantee(epsilon=self.epsilon, delta=self.delta)
        return guarantee.epsilon, guarantee.delta

    @available_if(_check_may_publish)
    def score(self, X, y):
        """Return the raw score of the published model on the given rows.

        The score has no noise, so it is not private on private rows. For a private score, use
        `skdp.model_selection.make_dp_scorer`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets or labels.

        Returns
        -------
        float
        """
        self._check_published("score")
        return default_score(self.scoring, self.best_estimator_).value(self.best_estimator_, X, y)

    predict = _delegate_to_best_estimator("predict")
    predict_proba = _delegate_to_best_estimator("predict_proba")
    predict_log_proba = _delegate_to_best_estimator("predict_log_proba")
    decision_function = _delegate_to_best_estimator("decision_function")
    transform = _delegate_to_best_estimator("transform")
    inverse_transform = _delegate_to_best_estimator("inverse_transform")

    @property
    def classes_(self):
        """Class labels of the published model."""
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self):
        """Number of features seen during `fit`."""
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self):
        """Names of the features seen during `fit`."""
        return self.best_estimator_.feature_names_in_

    def get_metadata_routing(self):
        """Return how metadata is routed to the estimator and the splitter.

        Returns
        -------
        MetadataRouter
        """
        router = MetadataRouter(owner=self).add_self_request(super().get_metadata_routing())
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router.add(estimator=self.estimator, method_mapping=mapping)
        if hasattr(self.cv, "get_metadata_routing"):
            mapping = MethodMapping().add(caller="fit", callee="split")
            router.add(splitter=self.cv, method_mapping=mapping)
        return router

    def __sklearn_tags__(self):
        if not is_estimator(self.estimator):
            # A fit, or a pipeline around the search, raises the error.
            return super().__sklearn_tags__()
        tags = deepcopy(get_tags(self.estimator))
        tags.target_tags.required = True
        return tags

    def _routed(self, params):
        """Return the arguments of `fit` that are routed to the estimator."""
        # Without metadata routing, all arguments are those of the estimator.
        if not params or not get_config()["enable_metadata_routing"]:
            return params
        return process_routing(self, "fit", **params).estimator.fit

    def _publish(self, fit, search, outcome):
        """Publish the scores, the best candidate and, if there is one, its model.

        Parameters
        ----------
        fit : PrivateFit
        search : SearchFit
            The fits that were charged.
        outcome : Outcome
            Released scores of the candidates, the index of the best one, and its model or None.
        """
        candidates = search.task.candidates
        best = outcome.best
        candidate = candidates[best]
        noise_std = search.noisy.deviation(search.released_together)
        released = {
            "best_index_": best,
            "best_params_": candidate.params,
            "best_score_": float(outcome.scores[best]),
            "cv_results_": _results(candidates, outcome.scores, noise_std, best),
            "strategy_": search.strategy,
        }
        public = search.task.public("the candidates")
        charged, stages = self._publish_statements(fit, search, candidate, outcome.model, public)
        if outcome.model is not None:
            released["best_estimator_"] = candidate.with_accountant(outcome.model, self.accountant)
        sampler = describe_rows_of_search(search)
        fit.publish(charged, public=public, sampler=sampler, stages=stages, **released)

    def _publish_statements(self, fit, search, candidate, model, public):
        """Set the statements of a published model, and return the charge and stages of the search.

        Parameters
        ----------
        fit : PrivateFit
        search : SearchFit
        candidate : Candidate
        model : estimator or None
            The fitted candidate that is published.
        public : tuple of str
            Public quantities of the search.
        """
        charged = search.plan()
        published = None
        if model is not None and not search.refits:
            published = next(i for i, c in enumerate(search.task.candidates) if c is candidate)
        stages = (*search.training_stages(published), *charged.stages)
        if model is not None:
            fitted_steps = []
            for step in candidate.pipeline.steps:
                fitted_step = step.fitted_in(model)
                # A step that received no columns was not fitted.
                if not hasattr(fitted_step, "privacy_"):
                    continue
                fitted_steps.append(fitted_step)
                if not search.refits:
                    for published_model in _models_of_charge(fitted_step):
                        published_model.privacy_ = _statement_of_training_part(
                            published_model.privacy_, fit, search.mean_runs is not None
                        )
                for stage in fitted_step.privacy_.stages:
                    stages += (replace(stage, name=f"{step.title}: {stage.name}"),)
            if fitted_steps:
                last = fitted_steps[-1].privacy_
                charged = replace(
                    charged,
                    scale=last.noise_scale,
                    sensitivity=last.sensitivity,
                    noise_multiplier=last.noise_multiplier,
                )
            # The published fit is one of many fits charged together, and the model also reveals the
            # choice. So the statement of every step contains the charge of the whole search.
            charge = fit.public_charge(charged)
            searched = tuple(for_unit(text, fit.terms.unit) for text in public)
            for fitted_step in fitted_steps:
                # A step that is itself a search was charged as one release of this plan, so its
                # model, too, is part of this plan only.
                composition = fitted_step.privacy_.composition
                for published_model in _models_of_charge(fitted_step):
                    statement = published_model.privacy_
                    # The search has set the classes of the step, which are the label set of
                    # `public`.
                    public_of_fit = [text for text in statement.public if text != DECLARED_CLASSES]
                    published_model.privacy_ = replace(
                        statement,
                        epsilon=charge.epsilon,
                        delta=charge.delta,
                        part_of=f"{type(self).__name__}: {self._describe_charge(search)}",
                        composition=composition,
                        seeded=statement.seeded or charge.seeded,
                        dataset=data_sets_of(self.accountant)[1],
                        ledger=ledger_of(self.accountant),
                        public=tuple(dict.fromkeys((*public_of_fit, *searched))),
                        charges=(charge,),
                        calls=(),
                    )
        return charged, stages

    def _describe_charge(self, search):
        """Return a description of the charge that the statement of a fitted step shows."""
        charged = "all fits and the scores"
        if search.choice is not None:
            charged = "all fits, the choice and the scores"
        return f"epsilon and delta are those of the search, whose one charge covers {charged}"

    def _check_published(self, method):
        """Return the published model; raise `AttributeError` if there is none."""
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise _no_model(method)
        return self.best_estimator_

    @property
    def may_publish_no_model(self):
        """True if the strategy is, or may turn out to be, one that publishes no model."""
        return self.refit is False and self.strategy in ("auto", "cv")


def _no_model(method):
    """Return the error of a method that needs a published model."""
    return AttributeError(
        f"{method} needs a published model, but strategy='cv', which strategy='auto' may choose, "
        "publishes none with refit=False: set refit=True"
    )


def _models_of_charge(model):
    """Return a fitted private model and the models in it that its charge paid for.

    A search publishes its best model, which is such a model. A model that was fitted before, such
    as that of ``cv="prefit"``, was charged separately.
    """
    charges = model.privacy_.charges
    models = [model]
    containers = [model]
    while containers:
        for _, nested in find_nested(containers.pop()):
            containers.append(nested)
            if hasattr(nested, "privacy_") and nested.privacy_.charges == charges:
                models.append(nested)
    return models


def _statement_of_training_part(statement, fit, is_drawn):
    """Return the statement of a fit to the training part of a search, not to all rows.

    `is_drawn` is True if the fit is one of a secret number of runs, which are listed once.
    """
    run = ""
    if is_drawn:
        run = ", as one of the runs drawn at random"
    stages = tuple(
        replace(stage, reads=f"within the training part, {stage.reads}{run}")
        for stage in statement.stages
    )
    sampler = statement.sampler
    if stages:
        sampler = for_unit(sampler_of(stages), fit.terms.unit)
    return replace(statement, stages=stages, sampler=sampler)


def _results(candidates, scores, noise_std, best):
    """Return `cv_results_` with noisy scores, one entry per candidate."""
    results = {}
    for name in sorted({name for candidate in candidates for name in candidate.params}):
        column = np.ma.masked_all(len(candidates), dtype=object)
        for i, candidate in enumerate(candidates):
            if name in candidate.params:
                column[i] = candidate.params[name]
        results[f"param_{name}"] = column
    results["params"] = [candidate.params for candidate in candidates]
    results["mean_test_score"] = scores
    results["noise_std_test_score"] = np.where(np.isnan(scores), np.nan, noise_std)
    # The best candidate ranks first, although a separate release chose it, not the noisy scores.
    sort_keys = np.where(np.isnan(scores), -np.inf, scores)
    sort_keys[best] = np.inf
    results["rank_test_score"] = 1 + np.sum(sort_keys[None, :] > sort_keys[:, None], axis=1)
    return results
