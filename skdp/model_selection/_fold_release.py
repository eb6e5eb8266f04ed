"""Release of the scores of folds: the fits, one charge, and the noise.

`dp_cross_validate`, `dp_cross_val_score` and the curves differ only in the score of a fold: counts
or sums pooled over folds, or one number per fold.
"""

from dataclasses import dataclass

import numpy as np

from skdp.model_selection._base_search import make_task
from skdp.model_selection._candidates import Rows
from skdp.model_selection._plans import plan_runs
from skdp.model_selection._runs import SearchRun
from skdp.model_selection._scores import default_score
from skdp.model_selection._splits import Layout, Splits, make_splits, take_fraction
from skdp.pipeline._selectable import check_selectable
from skdp.utils._values import FrozenValue


@dataclass(frozen=True, kw_only=True, eq=False)
class FoldRelease(FrozenValue):
    """Noisy scores of fits on folds, all charged at once.

    Parameters
    ----------
    noisy : ndarray
        The released values.
    search : SearchFit
        The charged fits and scores.
    source : RandomSource
        Noise source of the release.
    splits : Splits
        Training and test set of each fit of a candidate.
    n_candidates, n_folds : int
    """

    noisy: np.ndarray
    search: object
    source: object
    splits: Splits
    n_candidates: int
    n_folds: int

    @property
    def score(self):
        """The score of a fold."""
        return self.search.task.score

    @property
    def public(self):
        """Descriptions of the facts that are assumed to be public."""
        return self.search.task.public("the parameters")

    @property
    def stages(self):
        """Stages of the unpublished fits, on which the scores depend, and of the scores."""
        return (*self.search.training_stages(), *self.search.plan().stages)

    @property
    def sampler(self):
        """Description of the rows that the fits and the scores read."""
        return self.splits.describe(n_candidates=self.n_candidates)


def release_folds(
    report,
    fit,
    estimator,
    X,
    y,
    *,
    epsilon,
    delta,
    cv,
    scoring,
    groups,
    public_steps,
    n_jobs,
    grid=({},),
    sizes=(1.0,),
    make_score_of_folds=None,
):
    """Charge and fit all candidates on all folds, and release their scores with noise.

    Parameters
    ----------
    report : object
        It holds the accountant and receives the attributes of the release.
    fit : PrivateFit
    estimator, X, y, epsilon, delta, cv, scoring, groups, public_steps, n_jobs
        As in `dp_cross_val_score`.
    grid : sequence of dict, default=({},)
        Parameters of the candidates.
    sizes : sequence of float, default=(1.0,)
        Fractions of the training rows of each fold.
    make_score_of_folds : callable, default=None
        ``make_score_of_folds(rows, splits, guarantee)`` returns the function from `scoring` and a
        candidate to the score of a fold. With None, the score is one number per fold, named in
        `scoring`.

    Returns
    -------
    FoldRelease
    """
    check_selectable(estimator, X)
    rows = Rows.read(report, fit, X, y, groups)
    # Created after the rows were read, because `groups` sets the privacy unit.
    guarantee = fit.make_guarantee(epsilon, delta)
    splits = make_splits(cv, rows.n_units, rows.ids)
    make_score = default_score
    if make_score_of_folds is not None:
        make_score = make_score_of_folds(rows, splits, guarantee)
    task = make_task(
        estimator,
        grid,
        rows,
        guarantee,
        accountant=report.accountant,
        scoring=scoring,
        public_steps=public_steps,
        make_score=make_score,
    )
    train = []
    for fraction in sizes:
        for indices in splits.train:
            train.append(take_fraction(indices, fraction, rows.ids))
    nested = Splits(tuple(train), splits.test * len(sizes), rows.n_units)
    search = plan_runs(task, "scores", Layout.all_on_all(nested, len(grid)))
    run = SearchRun.charge_search(search, rows, n_jobs, fit)
    search = run.search
    raw = [value for value, _ in run.fit(list(search.runs))]
    if make_score_of_folds is not None:
        raw = search.task.score.vector(raw)
    return FoldRelease(
        noisy=search.noisy.release(raw, random_state=run.source),
        search=search,
        source=run.source,
        splits=nested,
        n_candidates=len(grid),
        n_folds=len(splits.test),
    )
