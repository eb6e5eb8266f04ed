"""One budget for all private steps of a pipeline, and a ready-made pipeline for raw tables."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Literal, TypeVar

from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags

from skdp._data._forms import TableForm
from skdp.accounting import Event, Guarantee, calibrate
from skdp.accounting._bounds import get_delta, get_epsilon
from skdp.accounting._laws import group_event
from skdp.base import guarantee_of, terms_of
from skdp.gam import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.gam._additive import RawTableModel
from skdp.ledger import PrivacyAccountant, Reservation
from skdp.ledger._state import LedgerConfig
from skdp.pipeline._checked_fits import BudgetPlan, with_checked_fits
from skdp.pipeline._instances import is_estimator
from skdp.pipeline._kinds import plans_its_fit, step_kind
from skdp.pipeline._parameters import PublicTable, check_parameters
from skdp.pipeline._planning import plan_pipeline
from skdp.pipeline._steps import check_step_names, with_dense_columns
from skdp.pipeline._table_vectorizer import DPTableVectorizer
from skdp.utils._types import Bounds, Categories, Classes
from skdp.utils._validation import check_privacy_parameters, is_auto, is_choice

# Class of the estimator that `split_budget` returns.
Estimator = TypeVar("Estimator", bound=BaseEstimator)
ADDITIVE = {"classifier": DPAdditiveClassifier, "regressor": DPAdditiveRegressor}


def split_budget(
    pipe: Estimator,
    epsilon: float,
    delta: float = 0.0,
    accountant: PrivacyAccountant | None = None,
    *,
    fractions: dict[str, float] | None = None,
    n_samples: int | None = None,
    n_features: int | None = None,
    classes: Classes | None = None,
    public_steps: Sequence[str] = (),
) -> Estimator:
    """Return a pipeline whose private steps share one budget and are calibrated together.

    The epsilons and deltas of the steps are as large as the tightest composition bound allows for a
    joint cost of (`epsilon`, `delta`). Their sums usually exceed this cost. Each fit of the
    pipeline is one charge of (`epsilon`, `delta`), made when its first step runs; clones, folds,
    worker processes and refits are charged in the same way.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
        It is not changed.
    epsilon : float
        Epsilon of one fit of the pipeline, for the accountant's unit.
    delta : float, default=0.0
        Delta of one fit. Each step with a parameter `delta` receives a fraction.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. If None,
        nothing is recorded and the guarantee holds under "add_remove".
    fractions : dict of str to float, default=None
        Relative budget of each private step, by its name as in `set_params`. By default, the final
        estimator after k transformers receives the fraction ``0.85**k``, and the transformers share
        the rest equally. Without a private final estimator, all steps receive equal fractions.
    n_samples, n_features : int, default=None
        Shape of the table. If it is declared, every step is planned exactly, and every fit must be
        to a table of that shape. None allows any shape, as cross-validation requires. Steps whose
        noise depends on the shape are then planned by their (epsilon, delta), which composes less
        tightly.
    classes : array-like, default=None
        Labels of y. Required if the steps do not declare them, unless there are two labels.
    public_steps : sequence of str, default=()
        Names of steps that learn from data and are declared public.

    Returns
    -------
    estimator
        A clone of `pipe` in which `epsilon`, `delta` and `accountant` of each private step are set.
        A `ColumnTransformer` with a part that may be sparse gets ``sparse_threshold=0``, unless
        another threshold was set, so that its output is always dense. Containers are replaced by
        subclasses whose fits check the parameters of every step, and `y`, against the table's
        shape, names and dtypes before the first charge.

    Raises
    ------
    ValueError
        If a step is neither private nor known to learn nothing and is not in `public_steps`, if
        none of the `n_features` columns is left for a remainder, or if a step refuses a parameter
        for every table. The message names the step.

    Notes
    -----
    ``docs/theory/pipelines.md`` explains the guarantee, and why steps may run in any order and in
    concurrent fits. A step is refused if its parameters were changed in such a way that its release
    differs from the plan. Each fit checks its current steps: a step that was added later and learns
    without privacy is refused before the charge.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdp import DPLogisticRegression, DPStandardScaler, PrivacyAccountant
    >>> from skdp.pipeline import split_budget
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-5)
    >>> pipe = make_pipeline(DPStandardScaler(bounds=(0, 1)), DPLogisticRegression(data_norm=5.0))
    >>> pipe = split_budget(pipe, 1.0, 1e-5, accountant, n_samples=500, n_features=3)
    >>> X = np.random.default_rng(0).uniform(size=(500, 3))
    >>> fitted = pipe.fit(X, X[:, 0] > 0.5)
    >>> accountant.epsilon_spent, sum(step.epsilon for step in pipe) > 1.0
    (1.0, True)
    """
    epsilon, delta = check_privacy_parameters(epsilon, delta)
    terms = terms_of(accountant)
    if not (accountant is None or isinstance(accountant, PrivacyAccountant)):
        raise ValueError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    public_steps = check_step_names(public_steps)
    pipe = with_dense_columns(pipe, public_steps)
    plan = plan_pipeline(
        pipe,
        n_samples,
        n_features,
        classes=classes,
        terms=terms,
        fractions=fractions,
        public_steps=public_steps,
    )
    row = Guarantee(epsilon=epsilon, delta=delta, neighbors=terms.neighbors).per_row.delta
    if terms.max_rows > 1:
        row *= 0.5  # The other half is for Gaussian mechanisms, which have no separate delta.
    form = TableForm(n_rows=n_samples, n_columns=n_features, classes=classes)
    check_parameters(plan.with_budget(epsilon, row), PublicTable(form=form))
    scale = joint_scale(lambda s: plan.event(s * epsilon, row), epsilon, delta, terms)
    charges = plan.charges(scale * epsilon, row)
    if accountant is None:
        budget_plan = BudgetPlan(charges, epsilon, delta)
        steps = plan.with_budget(scale * epsilon, row)
        return with_checked_fits(steps, public_steps, budget_plan, classes)
    plural = ""
    if len(charges) > 1:
        plural = "s"
    label = f"{type(pipe).__name__} of {len(charges)} private step{plural}"
    reservation = Reservation(accountant, charges, epsilon, delta, label)
    steps = plan.with_budget(scale * epsilon, row, reservation.steps)
    return with_checked_fits(steps, public_steps, classes=classes)


def joint_scale(
    make_event: Callable[[float], Event],
    epsilon: float,
    delta: float,
    terms: LedgerConfig | None = None,
) -> float:
    """Return the largest scale at which an event fits a budget, to a relative precision of 1e-4.

    Parameters
    ----------
    make_event : callable
        Maps a positive scale to an event whose cost increases with the scale. At scale 1 the
        epsilons of the parts sum to the budget's epsilon, so scale 1 always fits for single
        rows.
    epsilon, delta : float
        The budget.
    terms : LedgerConfig, default=None
        Relation and group size of the accountant that will be charged.

    Returns
    -------
    float
        The scale. An accountant accepts the event at this scale as (epsilon, delta).

    Examples
    --------
    >>> from skdp.accounting import Composed, Gaussian, gaussian_noise_multiplier
    >>> from skdp.pipeline import joint_scale
    >>> def two_halves(scale):
    ...     return Gaussian(gaussian_noise_multiplier(scale * 0.5, 5e-6)) * 2
    >>> round(joint_scale(two_halves, 1.0, 1e-5), 2)
    1.43
    """
    if terms is None:
        terms = terms_of(None)
    event = cache(make_event)
    if group_event(event(1.0), terms.max_rows) is None:
        # A per-row guarantee at a smaller epsilon implies the group's guarantee at this one.
        row = Guarantee(epsilon=epsilon, delta=delta, neighbors=terms.neighbors).per_row
        epsilon = row.epsilon
        delta = row.delta
        terms = terms.per_row
    relation = terms.relation
    group_size = terms.max_rows
    one = group_size == 1

    def fits(scale):
        """Return True if the event at this scale is within the budget."""
        made = event(scale)
        within = get_epsilon(made, delta, relation=relation, group_size=group_size) <= epsilon
        return within and not (one and get_delta(made, epsilon, relation=relation) > delta)

    start = 1.0
    if not fits(1.0):
        start = 1.0 - 1e-12
    if delta == 0.0 and one and fits(start):
        return start
    scale = calibrate(
        event,
        epsilon,
        delta,
        relation=relation,
        group_size=group_size,
        bounds=(2.0**-30, 2.0**20),
        rtol=1e-4,
    )
    shrink = 1e-6
    while not fits(scale):
        scale = scale * (1 - shrink)
        shrink = min(2 * shrink, 0.5)
    if fits(start):
        return max(scale, start)
    return scale


def tabular_pipeline(
    estimator: Literal["classifier", "regressor"] | BaseEstimator | type[BaseEstimator],
    *,
    epsilon: float = 1.0,
    delta: float = 1e-6,
    bounds: Bounds | Literal["auto"] = "auto",
    categories: Categories | Literal["auto"] | None = None,
    target_bounds: tuple[float, float] | None = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
    **params: object,
) -> Pipeline:
    """Return a pipeline that fits a private model to raw tables within one budget.

    Tables are data frames or arrays of numbers, dates, strings, categories and booleans, with or
    without missing values. The dtype or the declaration of a column determines its treatment.

    Parameters
    ----------
    estimator : "classifier", "regressor", or a classifier or regressor of skdp, class or instance
        "classifier" and "regressor" mean `DPAdditiveClassifier` and `DPAdditiveRegressor`, which
        accept raw tables and are the only step. Other models follow a `DPTableVectorizer`. An
        instance is not changed.
    epsilon : float, default=1.0
        Epsilon of one fit of the pipeline.
    delta : float, default=1e-6
        Delta of one fit. Finding categories needs a positive delta.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high) or "auto", default="auto"
        Range of the numeric and date columns. It must not be computed from the data. Ranges that
        are not declared are found privately.
    categories : dict of column to list, list or "auto", default=None
        Categories of the categorical columns, which must not be computed from the data. "auto", for
        the whole table or instead of a column's list, finds them privately.
    target_bounds : tuple of (low, high), default=None
        Range of a regressor's target, unless an instance declares it. None for classifiers.
    accountant : PrivacyAccountant, default=None
        Accountant that is charged by fits. None uses the accountant of an instance. Without one,
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws noise from the operating system's cryptographic generator. An int makes the
        noise reproducible, for tests and examples: anyone who knows it can remove the noise.
    **params
        Further parameters of the model, such as ``class_weight="balanced"`` or
        ``interactions="auto"``.

    Returns
    -------
    Pipeline
        Its last step is the model, with `epsilon`, `delta`, `accountant` and, if it has this
        parameter, `data_norm` set. Each fit is one charge of (`epsilon`, `delta`).

    Raises
    ------
    ValueError
        If the estimator is not a classifier or regressor of skdp, lacks a parameter in `params`, or
        refuses one. Nothing was charged.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private, as `split_budget` guarantees. The
    vectorizer returns rows of norm at most 1. It bins numeric columns. If the model releases the
    moments of all features (``mechanism="sufficient_statistics"``), it needs few features, so
    numeric columns are scaled instead. The measurements are in ``docs/theory/pipelines.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDClassifier, PrivacyAccountant, tabular_pipeline
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(17, 90, size=5000), rng.uniform(size=5000)])
    >>> y = X[:, 0] > 40
    >>> X[::7] = np.nan
    >>> accountant = PrivacyAccountant(epsilon=1.0, delta=1e-6)
    >>> pipe = tabular_pipeline(
    ...     DPSGDClassifier, bounds={0: (17, 90), 1: (0, 1)}, accountant=accountant
    ... )
    >>> pipe.fit(X, y).score(X, y) > 0.8
    True
    >>> accountant.epsilon_spent
    1.0
    """
    if isinstance(estimator, str) and estimator in ADDITIVE:
        estimator = ADDITIVE[estimator]
    model: BaseEstimator = estimator() if isinstance(estimator, type) else estimator
    predicts = is_estimator(model) and (is_classifier(model) or is_regressor(model))
    # The table vectorizer returns sparse rows.
    fits = predicts and (isinstance(model, RawTableModel) or get_tags(model).input_tags.sparse)
    if not fits or step_kind(model) != "private" or not plans_its_fit(model):
        raise ValueError(
            "estimator must be 'classifier', 'regressor', or a classifier or regressor of skdp for "
            "raw tables or sparse rows, such as DPLogisticRegression; for a search, build the "
            f"pipeline first, DPGridSearchCV(tabular_pipeline(...), ...); got {estimator!r}"
        )
    model_params = model.get_params(deep=False)
    model = clone(model)
    unknown = [name for name in params if name not in model_params]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a parameter of {type(model).__name__}, which has "
            f"{', '.join(sorted(model_params))}"
        )
    if "data_norm" in params:
        raise ValueError("data_norm cannot be set: the vectorizer returns rows of norm at most 1")
    if target_bounds is not None and "target_bounds" not in model_params:
        raise ValueError(
            f"target_bounds is for regressors, and {type(model).__name__} has no such parameter: "
            "leave target_bounds out"
        )
    model.set_params(**params)
    model_params = model.get_params(deep=False)
    set_here: dict[str, object] = {"epsilon": epsilon, "delta": delta, "data_norm": 1.0}
    optional: dict[str, object] = {
        "target_bounds": target_bounds,
        "accountant": accountant,
        "random_state": random_state,
        "categories": categories,
    }
    if not is_auto(bounds):
        optional["bounds"] = bounds
    set_here |= {name: value for name, value in optional.items() if value is not None}
    model.set_params(**{name: value for name, value in set_here.items() if name in model_params})
    guarantee_of(model)
    if isinstance(model, RawTableModel):
        return with_checked_fits(make_pipeline(model))
    numeric: Literal["scaled", "bins"] = "bins"
    if is_choice(model_params.get("mechanism"), "sufficient_statistics"):
        numeric = "scaled"
    front = DPTableVectorizer(
        bounds=bounds, categories=categories, numeric=numeric, random_state=random_state
    )
    return split_budget(make_pipeline(front, model), epsilon, delta, model.accountant)
