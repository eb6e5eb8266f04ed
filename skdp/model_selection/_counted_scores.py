"""Base class of classifiers whose predictions are adjusted using counts of scores by class."""

from collections.abc import Iterator
from dataclasses import replace
from numbers import Real

import numpy as np
from sklearn.base import ClassifierMixin, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from skdp._data._classes import LABEL_SET
from skdp._data._tables import target_array
from skdp._fitting._fit_progress import FitProgress
from skdp._fitting._scored_models import check_scored
from skdp.base import PrivateFit, private_fit_method, raw_data_policy, terms_of
from skdp.mechanisms._plan import plan_for
from skdp.mechanisms._stages import stages_of
from skdp.model_selection._base_search import (
    STRATEGY_TEXTS,
    BasePrivateSearch,
    PublicUnits,
    describe_rows_of_search,
    make_task,
)
from skdp.model_selection._candidates import Rows, check_accountants, labels_of_candidate
from skdp.model_selection._cross_validate import grid_guarantee
from skdp.model_selection._evaluation import read_scored_rows
from skdp.model_selection._evaluation_task import BINARY_METRICS, BinaryTask, check_row_wise
from skdp.model_selection._runs import SearchRun
from skdp.model_selection._score_cells import (
    PooledCells,
    ScoreCells,
    cell_counts,
    plan_counted_fits,
)
from skdp.model_selection._splits import (
    Layout,
    check_cv,
    check_not_iterator,
    hold_out,
    make_splits,
    number_of_splits,
)
from skdp.pipeline._instances import is_estimator
from skdp.pipeline._selectable import check_selectable
from skdp.pipeline._trial import suppress_fit_output
from skdp.utils._units import UnitText
from skdp.utils._validation import SIZES, check_boolean, check_integer, check_n_jobs, check_within

RESPONSE_METHODS = ("predict_proba", "decision_function")
COUNTED_ROWS = UnitText(lambda unit: f"the counted {unit}s, once")


class BaseCountedScores(ClassifierMixin, BasePrivateSearch):
    """Base of meta-estimators that release the scores of a two-class classifier by class.

    The fit of the classifier and the counts of its scores are one release. Subclasses define
    `_response_methods` and `_adjust`, which returns the fitted attributes for released counts.
    """

    # Parameters of searches that are not needed for a single candidate.
    selection = "exponential"
    mean_runs = None

    @private_fit_method
    def fit(self, X, y, *, groups=None, **params):
        """Charge the fits and the counts of the scores together, and fit the model.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Rows, in any form that the estimator accepts.
        y : array-like of shape (n_samples,)
            Labels of two classes.
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
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the remaining budget does not cover all fits and the counts; nothing was fitted.
        """
        if self._is_prefit:
            self._check_parameters()
            # A frozen estimator that is not private is assumed to have been fitted to public rows.
            check_scored(self.estimator, self, lambda: raw_data_policy(self._terms))
        n_stages = 1 + check_boolean(self.refit, "refit")
        with PrivateFit(self, FitProgress(self, n_stages)) as fit:
            if self._is_prefit:
                self._fit_prefit(fit, X, y, groups)
                return self
            run = self._read_plan_and_charge(fit, X, y, groups, params)
            if self.verbose:
                print(f"{type(self).__name__}: {STRATEGY_TEXTS['histogram']}")
            self._run_and_publish(fit, run)
        return self

    @property
    def _terms(self):
        return terms_of(self.accountant)

    @property
    def _is_prefit(self):
        """True if the estimator is already fitted, so that only its scores are counted."""
        is_named = isinstance(self.cv, str) and self.cv == "prefit"
        return is_named or isinstance(self.estimator, FrozenEstimator)

    @property
    def _prefit_model(self):
        """The estimator without the `FrozenEstimator` around it."""
        if isinstance(self.estimator, FrozenEstimator):
            return self.estimator.estimator
        return self.estimator

    def _describe_charge(self, search):
        """Return a description of the charge that the statement of a fitted step shows."""
        return (
            f"epsilon and delta are those of {type(self).__name__}, whose one charge covers all "
            "fits and the counts of scores"
        )

    def _candidate_params(self):
        return ({},)

    def _check_parameters(self):
        """Raise `ValueError` for parameters that are wrong for every table."""
        check_boolean(self.refit, "refit")
        check_n_jobs(self.n_jobs)
        check_integer(self.verbose, "verbose", 0)
        if not is_estimator(self.estimator):
            raise ValueError(f"estimator must be an estimator, got {self.estimator!r}")
        if not is_classifier(self.estimator):
            raise ValueError(
                f"estimator must be a classifier, got {type(self._prefit_model).__name__}"
            )
        self._response_method(self._prefit_model)
        if self._is_prefit:
            if self.refit:
                raise ValueError("refit=True fits the estimator again: set cv to folds or a float")
            check_is_fitted(self._prefit_model)
        elif isinstance(self.cv, Real) and not isinstance(self.cv, int | np.integer):
            check_within(self.cv, "cv", 0.0, 1.0, "()")
        elif not isinstance(self.cv, Iterator):
            # An iterator of folds can only be read once.
            cv = check_cv(self.cv, self._terms.unit == "person")
            self._check_single_model(number_of_splits(cv))

    def _check_score_and_splits(self, candidates, table, n_columns):
        """Raise `ValueError` if a model cannot be scored, or the rows cannot be split.

        A pipeline calls this before its first charge; `table` is a `PublicTable`, as in
        `BasePrivateSearch`.
        """
        check_not_iterator(self.cv)
        for candidate in candidates:
            check_accountants(candidate, self.accountant)
            self._response_method(candidate)
            if table.has_target and table.y is not None:
                self._check_two_classes(labels_of_candidate(candidate, target_array(table.y)))
        units = PublicUnits.of_table(table, self._terms)
        if units.are_known:
            self._make_splits(units.n_units, units.ids)
        if units.are_persons:
            for candidate in candidates:
                check_row_wise(candidate)

    def _response_method(self, model):
        """Return the method of the model whose scores are counted."""
        for name in self._response_methods:
            if hasattr(model, name):
                return name
        raise ValueError(
            f"estimator needs one of the methods {', '.join(self._response_methods)}, and "
            f"{type(model).__name__} with its parameters has none before it is fitted"
        )

    def _check_two_classes(self, classes):
        """Return the classes; raise `ValueError` unless there are two."""
        if len(classes) != 2:
            raise ValueError(
                f"{type(self).__name__} is for two classes. Only binary classification is "
                f"supported, got the classes {list(classes)[:5]}"
            )
        return classes

    def _make_splits(self, n_units, ids):
        """Return the public splits of rows, or persons."""
        is_fraction = isinstance(self.cv, Real) and not isinstance(self.cv, int | np.integer)
        if is_fraction:
            splits = hold_out(n_units, ids, float(self.cv))
        else:
            splits = make_splits(self.cv, n_units, ids)
        tests = np.concatenate(splits.test)
        if len(np.unique(tests)) < len(tests):
            raise ValueError(
                f"cv={self.cv!r} has a row in several test sets, which would be counted "
                "repeatedly: use folds, such as cv=5"
            )
        self._check_single_model(len(splits.train))
        return splits

    def _check_single_model(self, n_splits):
        """Raise `ValueError` if several models would be fitted and none of them published.

        Parameters
        ----------
        n_splits : int or None
            None if it depends on the number of rows.
        """
        if not self.refit and n_splits != 1:
            number = "several" if n_splits is None else n_splits
            raise ValueError(
                f"refit=False needs a single model, and cv={self.cv!r} fits {number}: set "
                "refit=True, or a fraction of held-out rows such as cv=0.25"
            )

    def _public_edges(self, score_bounds):
        """Return declared inner edges of the cells, as probabilities; None if there are none."""

    def _grid_edges(self, n_units, guarantee):
        """Return the inner edges for public numbers; None for the edges of the metrics' grid."""

    def _binary_task(self, classes, method):
        return BinaryTask(classes=np.asarray(classes), metrics=BINARY_METRICS, method=method)

    def _read_plan_and_charge(self, fit, X, y, groups, params):
        """Read the table, and charge the fits on its splits and the counts of the scores.

        Returns
        -------
        SearchRun
        """
        self._check_parameters()
        if self._is_prefit:
            raise ValueError("a prefit estimator cannot be fitted inside another search")
        check_selectable(self.estimator, X)
        rows = Rows.read(self, fit, X, y, groups, **self._routed(params))
        guarantee = fit.guarantee
        splits = self._make_splits(rows.n_units, rows.ids)

        def make_score(scoring, pipe):
            """Return the `PooledCells` of a model; `scoring` is None (see `make_task`)."""
            if fit.terms.unit == "person":
                check_row_wise(pipe)
            classes = self._check_two_classes(labels_of_candidate(pipe, rows.y))
            method = self._response_method(pipe)
            unit_guarantee = guarantee.per_row
            if len(splits.train) > 1 or self.refit:
                unit_guarantee = grid_guarantee(unit_guarantee)
            bounds = None
            if method == "predict_proba":
                bounds = (0.0, 1.0)
            edges = self._public_edges(bounds)
            if edges is None:
                edges = self._grid_edges(sum(splits.test_sizes), unit_guarantee)
            return PooledCells(
                self._binary_task(classes, method), unit_guarantee, splits.test_sizes, edges
            )

        task = make_task(
            self.estimator,
            self._candidate_params(),
            rows,
            guarantee,
            accountant=self.accountant,
            scoring=None,
            public_steps=self.public_steps,
            make_score=make_score,
            refit=self.refit,
        )
        search = plan_counted_fits(task, Layout.all_on_all(splits))
        return SearchRun.charge_search(search, rows, self.n_jobs, fit)

    def _run_and_publish(self, fit, run):
        """Run the charged fits, release the counts, and publish the adjusted model."""
        search = run.search
        numbers = list(search.runs)
        with fit.progress.stage("fits"):
            results = run.fit(numbers, return_models=not search.refits)
        score = search.task.score
        counts = score.vector([values for values, _ in results])
        noisy = search.noisy.release(counts, random_state=run.source)
        model = results[0][1]
        if search.refits:
            with fit.progress.stage("refit"):
                model = self._refitted(run)
        candidate = search.task.candidates[0]
        public = search.task.public("the parameters")
        charged, stages = self._publish_statements(fit, search, candidate, model, public)
        cells = ScoreCells.from_release(score.statistics, noisy, search.noisy)
        self._publish_model(
            fit,
            charged,
            candidate.with_accountant(model, self.accountant),
            cells,
            score.task.method,
            public=public,
            stages=stages,
            sampler=describe_rows_of_search(search),
        )

    def _refitted(self, run):
        """Return the model that is fitted to all rows, after the fits whose scores are counted."""
        refit = run.search.refits[0]
        with suppress_fit_output():
            return refit.fitted(run.rows, run.allow, run.seeds(refit))

    def _fit_prefit(self, fit, X, y, groups):
        """Release the counts of the scores of a fitted model."""
        model = self._prefit_model
        method = self._response_method(model)
        classes = self._check_two_classes(np.asarray(model.classes_))
        task = self._binary_task(classes, method)
        table, labels = read_scored_rows(model, X, y, task)
        n_units = fit.read_groups(groups, len(labels))
        if fit.terms.unit == "person":
            check_row_wise(model)
        edges = self._public_edges((0.0, 1.0) if method == "predict_proba" else None)

        def plan_for_unit(guarantee):
            """Return the plan of the release of the counts of the model's scores."""
            grid = edges
            if grid is None:
                grid = self._grid_edges(n_units, guarantee)
            counts = cell_counts(task, n_units, guarantee, grid)
            return replace(counts.plan(), run=counts.release_counts, mechanism=counts)

        plan = plan_for(plan_for_unit, fit.guarantee)
        source = fit.charge(plan)
        noisy = fit.run_charged(plan, task.rows(model, table, labels), source)
        counts = plan.mechanism
        self._publish_model(
            fit,
            plan,
            model,
            ScoreCells.from_release(counts, noisy, counts.mechanism),
            method,
            public=(SIZES, "the model", LABEL_SET),
            stages=tuple(replace(stage, reads=COUNTED_ROWS) for stage in stages_of(plan)),
            sampler=COUNTED_ROWS,
        )

    def _publish_model(self, fit, plan, model, cells, method, *, public, stages, sampler):
        """Publish the model and the adjustment computed from released counts.

        Parameters
        ----------
        fit : PrivateFit
        plan : Plan
            The charged plan.
        model : estimator
            The model whose scores were counted, or its refit.
        cells : ScoreCells
            Released counts of the scores of each class.
        method : str
            Method of the model that returns the scores.
        public, stages, sampler
            Parts of the privacy statement; see `PrivateFit.publish`.
        """
        raise NotImplementedError

    def _dry_run(self, X, y=None, groups=None, *, n_units, **params):
        """Run a fit up to its charge, in order to raise its errors."""
        with PrivateFit(self) as fit:
            self._read_plan_and_charge(fit, X, y, groups, params)

    def score(self, X, y):
        """Return the accuracy of the predictions on the given rows.

        The score has no noise, so it is not private on private rows. For a private score, use
        `skdp.dp_evaluate`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        float
        """
        return ClassifierMixin.score(self, X, y)

    @property
    def best_estimator_(self):
        """The fitted model, under the name that searches use."""
        return self.estimator_

    def _check_published(self, method):
        """Return the published model; raise `NotFittedError` before the fit.

        It overrides the method of searches, which may publish no model and then name `method` in
        their error. There is always a model here, so `method` is not needed.
        """
        check_is_fitted(self, "estimator_")
        return self.estimator_

    def _scores(self, X):
        """Return the scores of the positive class from the fitted model.

        They are those of `response_method_`, from which `predict` and the thresholds are computed.
        """
        model = self._check_published("predict")
        scores = np.asarray(getattr(model, self.response_method_)(X), dtype=np.float64)
        if self.response_method_ == "predict_proba":
            return np.ascontiguousarray(scores[:, 1])
        return scores

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
