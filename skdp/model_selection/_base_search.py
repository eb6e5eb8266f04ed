"""What the searches for hyperparameters share."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
from joblib import effective_n_jobs
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.accounting import Guarantee
from skdp.base import PrivateEstimator, PrivateFit, private_fit_method
from skdp.model_selection._candidates import Rows, make_candidate
from skdp.model_selection._plans import SELECTIONS, SearchTask
from skdp.model_selection._runs import SearchRun, run_plan
from skdp.model_selection._scores import default_score
from skdp.model_selection._strategies import STRATEGIES, plan_search
from skdp.pipeline._selectable import check_selectable
from skdp.utils._fit_progress import FitProgress
from skdp.utils._units import UnitText
from skdp.utils._validation import check_boolean, check_choice, check_integer

WORDS = {
    "disjoint": UnitText(
        lambda unit: f"each candidate on a part of its own, compared on held-out {unit}s"
    ),
    "holdout": UnitText(
        lambda unit: f"all candidates on the training {unit}s, compared on held-out {unit}s"
    ),
    "cv": UnitText(
        lambda unit: f"all candidates on all folds, each {unit} in every fold but its own"
    ),
    "random_stopping": "a secret random number of runs, each of a candidate drawn at random",
}


def make_task(estimator, grid, rows, guarantee, *, accountant, scoring, public_steps, **asked):
    """Return what is asked of a search, once its candidates have read the rows.

    Parameters
    ----------
    estimator : estimator
    grid : iterable of dict
        The parameters of each candidate.
    rows : Rows
    guarantee : Guarantee
        The total.
    accountant, scoring, public_steps
        As the searches have them.
    **asked
        Further fields of `SearchTask`.

    Raises
    ------
    ValueError
        If there is no candidate, one cannot be planned or scored, or the rows cannot be read.
    """
    public_steps = tuple(public_steps)
    known = rows, public_steps, accountant
    candidates = tuple(make_candidate(estimator, params, *known) for params in grid)
    if not candidates:
        raise ValueError("there is no candidate: the parameter grid is empty")
    score = default_score(scoring, candidates[0].pipeline.pipe)
    for own in candidates:
        score.check(own.pipeline.pipe, own.pipeline.classes, **rows.shared)
    asked |= {"score": score, "shape": (rows.n_units, rows.n_columns), "public_steps": public_steps}
    return SearchTask(candidates=candidates, guarantee=guarantee.per_row, **asked)


def _of_published(name):
    """Make a method that calls the published model's, and is there if that model has it."""

    def is_there(search):
        getattr(getattr(search, "best_estimator_", search.estimator), name)
        return True

    def call(self, X):
        return getattr(self._check_published(name), name)(X)

    call.__name__ = name
    call.__qualname__ = f"BasePrivateSearch.{name}"
    call.__doc__ = f"Call `{name}` of the published model."
    return available_if(is_there)(call)


class BasePrivateSearch(MetaEstimatorMixin, PrivateEstimator):
    """What searches share: a candidate list that is public, and one charge.

    A search returns the candidates' parameters by ``_candidate_params()``.
    """

    @private_fit_method
    def fit(self, X, y, *, groups=None, **params):
        """Charge the whole search, run it and publish the chosen candidate.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows, as the estimator takes them.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.
        **params : dict
            What goes to the estimator's `fit`, routed as in scikit-learn with metadata routing
            enabled.

        Returns
        -------
        self : estimator
            The fitted search.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant cannot pay for the whole search; no fit was made.
        """
        with PrivateFit(self) as fit, FitProgress(self, 1 + bool(self.refit)) as progress:
            run = self._charged(fit, X, y, groups, params)
            if self.verbose:
                words = WORDS[run.plan.strategy]
                count = len(run.plan.task.candidates)
                print(f"{type(self).__name__}: {count} candidates, {words}")
            self._publish(fit, run.plan, run_plan(run, progress))
        return self

    def _check_parameters(self):
        """Raise `ValueError` for parameters of the search that no table makes right."""
        check_choice(self.strategy, "strategy", ("auto", *STRATEGIES))
        check_choice(self.selection, "selection", SELECTIONS)
        check_boolean(self.refit, "refit")
        if self.mean_runs is not None:
            check_integer(self.mean_runs, "mean_runs", 1)
        check_integer(self.verbose, "verbose", 0)
        if self.n_jobs is not None:
            try:
                effective_n_jobs(int(self.n_jobs))
            except (TypeError, ValueError) as error:
                raise ValueError(f"n_jobs must be an integer but 0, got {self.n_jobs!r}") from error

    def _charged(self, fit, X, y, groups, params):
        """Read the rows, plan and charge: all of a fit that is before its first run."""
        self._check_parameters()
        check_selectable(self.estimator, X)
        rows = Rows.read(self, fit, X, y, groups, **self._routed(params))
        given = ("accountant", "scoring", "public_steps", "selection", "refit")
        options = {name: getattr(self, name) for name in given}
        task = make_task(self.estimator, self._candidate_params(), rows, fit.guarantee, **options)
        asked = self.strategy, self.cv, rows.ids, self.mean_runs, rows.terms.composition
        return SearchRun.charged(plan_search(task, *asked), rows, self.n_jobs, fit)

    def _dry_run(self, X, y=None, groups=None, *, n_units, **params):
        """Do what a fit does up to its charge, for the errors that it raises."""
        with PrivateFit(self) as fit:
            self._charged(fit, X, y, groups, params)

    def cost(self):
        """Return what the whole search costs, the final model included.

        Returns
        -------
        epsilon, delta : float
            Of the accountant's unit.
        """
        price = getattr(self, "privacy_", None) or Guarantee(epsilon=self.epsilon, delta=self.delta)
        return price.epsilon, price.delta

    def score(self, X, y):
        """Return the raw score of the published model on the given rows.

        It is not part of the search's release: on private rows it is not private. See
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

    predict = _of_published("predict")
    predict_proba = _of_published("predict_proba")
    predict_log_proba = _of_published("predict_log_proba")
    decision_function = _of_published("decision_function")
    transform = _of_published("transform")
    inverse_transform = _of_published("inverse_transform")

    @property
    def classes_(self):
        return self.best_estimator_.classes_

    @property
    def n_features_in_(self):
        return self.best_estimator_.n_features_in_

    @property
    def feature_names_in_(self):
        return self.best_estimator_.feature_names_in_

    def get_metadata_routing(self):
        """Return how metadata are routed to the estimator and the splitter.

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
        tags = deepcopy(get_tags(self.estimator))
        tags.target_tags.required = True
        return tags

    def _routed(self, params):
        # Without params `process_routing` returns an object that has every name, `in` never ends.
        if not params or not get_config()["enable_metadata_routing"]:
            return params
        return process_routing(self, "fit", **params).estimator.fit

    def _publish(self, fit, plan, outcome):
        candidates = plan.task.candidates
        best = outcome.best
        chosen = candidates[best]
        deviation = plan.noisy.deviation(plan.released_together)
        released = {
            "best_index_": best,
            "best_params_": chosen.params,
            "best_score_": float(outcome.scores[best]),
            "cv_results_": _results(candidates, outcome.scores, deviation, best),
            "strategy_": plan.strategy,
        }
        charged = plan.mechanism
        stages = (*plan.training_stages, *plan.stages)
        if outcome.model is not None:
            found = [(step.title, step.fitted_in(outcome.model)) for step in chosen.pipeline.steps]
            # What no columns were given was not fitted.
            found = [(title, part) for title, part in found if hasattr(part, "privacy_")]
            parts = [part for _, part in found]
            for title, part in found:
                own = part.privacy_.stages
                stages += tuple(replace(stage, name=f"{title}: {stage.name}") for stage in own)
            if parts:
                last = parts[-1].privacy_
                charged = replace(charged, scale=last.noise_scale, sensitivity=last.sensitivity)
            released["best_estimator_"] = chosen.with_accountant(outcome.model, self.accountant)
            # The fit of a chosen model is one of many that were charged as one: what the model
            # tells of the rows includes the choice. All of its steps have the one charge.
            spend = fit.public_charge(charged)
            for part in parts:
                part.privacy_ = replace(
                    part.privacy_,
                    epsilon=spend.epsilon,
                    delta=spend.delta,
                    part_of=f"{type(self).__name__}: epsilon and delta are those of the search, "
                    "whose one charge covers all fits, the choice and the scores",
                    seeded=part.privacy_.seeded or spend.seeded,
                    charges=(spend,),
                    calls=(),
                )
        public = plan.task.public("the candidates")
        sampler = WORDS[plan.strategy]
        fit.publish(charged, public=public, sampler=sampler, stages=stages, **released)

    def _check_published(self, method):
        check_is_fitted(self)
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(
                f"{method} needs a published model: strategy='cv' has none with refit=False"
            )
        return self.best_estimator_


def _results(candidates, scores, deviation, best):
    """Return noisy results as scikit-learn's searches do, one row a candidate."""
    results = {}
    for name in sorted({name for candidate in candidates for name in candidate.params}):
        column = np.ma.masked_all(len(candidates), dtype=object)
        for i, candidate in enumerate(candidates):
            if name in candidate.params:
                column[i] = candidate.params[name]
        results[f"param_{name}"] = column
    results["params"] = [candidate.params for candidate in candidates]
    results["mean_test_score"] = scores
    results["noise_std_test_score"] = np.where(np.isnan(scores), np.nan, deviation)
    # The candidate was chosen by a release of its own, not by the noisy scores.
    known = np.where(np.isnan(scores), -np.inf, scores)
    known[best] = np.inf
    results["rank_test_score"] = 1 + np.sum(known[None, :] > known[:, None], axis=1)
    return results
