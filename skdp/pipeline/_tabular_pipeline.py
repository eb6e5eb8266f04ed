"""A pipeline for raw tables: a private front and a private model, in one budget."""

from numbers import Integral

from sklearn.base import clone, is_classifier, is_regressor
from sklearn.pipeline import make_pipeline

from skdp.base import TableShape, guarantee_of
from skdp.gam import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.pipeline._instances import is_estimator
from skdp.pipeline._kinds import plans_its_fit, step_kind
from skdp.pipeline._planning import labels_of
from skdp.pipeline._split import split_budget
from skdp.pipeline._table_vectorizer import DPTableVectorizer
from skdp.utils._docstrings import documented
from skdp.utils._validation import is_auto

ADDITIVE = {"classifier": DPAdditiveClassifier, "regressor": DPAdditiveRegressor}
# Of a table of so many rows, or of a whole batch, a model is asked whether it would refuse it.
SOME_ROWS = 1000


@documented()
def tabular_pipeline(
    estimator,
    *,
    epsilon=1.0,
    delta=1e-6,
    bounds="auto",
    categories=None,
    target_bounds=None,
    accountant=None,
    random_state=None,
):
    """Return a pipeline that fits a private model to raw tables, in one budget.

    Tables are data frames or arrays of numbers, dates, strings, categories and booleans, with or
    without missing values. A column goes where its type, or what is declared, says.

    Parameters
    ----------
    estimator : "classifier", "regressor", or a classifier or regressor of skdp, class or instance
        "classifier" and "regressor" are `DPAdditiveClassifier` and `DPAdditiveRegressor`: they
        take raw tables by themselves, and are the only step. Others stand behind a
        `DPTableVectorizer`. An instance is not changed.
    epsilon : float, default=1.0
        What one fit of the whole pipeline costs.
    delta : float, default=1e-6
        Likewise. Finding categories needs a positive one.
    bounds : "auto", tuple of (low, high) or dict of column to (low, high), default="auto"
        The range of columns of numbers and dates, declared, not computed from the data. What is
        not declared is found privately.
    categories : dict of column to list, list, default=None
        The categories of columns of labels, likewise; "auto" in the place of a list finds them.
    target_bounds : tuple of (low, high), default=None
        The range of a regressor's target, unless an instance declares it.
    accountant : PrivacyAccountant, default=None
        Where fits are charged. None takes that of an instance, or charges nothing and protects
        under "add_remove".
    {random_state}

    Returns
    -------
    Pipeline
        Its last step is the model, with `epsilon`, `delta`, `accountant` and, where it has one,
        `data_norm` set. Each fit is one charge of (`epsilon`, `delta`).

    Raises
    ------
    ValueError
        If the estimator is none of skdp's for labels or targets, or would refuse a parameter.
        Nothing was charged.

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private, as `split_budget` guarantees. The front
    makes rows of norm at most 1. It bins numbers, unless the model releases the moments of all
    features (``mechanism="sufficient_statistics"``), for which few features are better: then it
    scales them. The measurements are in ``docs/pipelines.md``.

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
    model = _model(estimator)
    own = model.get_params(deep=False)
    declared = {} if is_auto(bounds) else {"bounds": bounds}
    optional = {"categories": categories, "target_bounds": target_bounds}
    optional |= {"accountant": accountant, "random_state": random_state}
    declared |= {name: value for name, value in optional.items() if value is not None}
    given = {"epsilon": epsilon, "delta": delta, "data_norm": 1.0} | declared
    model.set_params(**{name: value for name, value in given.items() if name in own})
    # What it would refuse is refused here, before a front is charged.
    guarantee = guarantee_of(model)
    if isinstance(model, DPAdditiveClassifier | DPAdditiveRegressor):
        return make_pipeline(model)
    batch = own.get("batch_size")
    n_rows = max(SOME_ROWS, batch if isinstance(batch, Integral) else 0)
    shape = TableShape(n_rows=n_rows, n_columns=10, classes=labels_of(own))
    model.plan_fit(shape, guarantee)
    moments = own.get("mechanism") == "sufficient_statistics"
    front = DPTableVectorizer(
        bounds=bounds,
        categories=categories,
        numbers="scaled" if moments else "bins",
        random_state=random_state,
    )
    return split_budget(make_pipeline(front, model), epsilon, delta, model.accountant)


def _model(estimator):
    """Return an instance of what is asked for, or raise `ValueError`."""
    if isinstance(estimator, str) and estimator in ADDITIVE:
        estimator = ADDITIVE[estimator]
    model = estimator() if isinstance(estimator, type) else estimator
    predicts = is_estimator(model) and (is_classifier(model) or is_regressor(model))
    if not predicts or step_kind(model) != "private" or not plans_its_fit(model):
        raise ValueError(
            "estimator must be 'classifier', 'regressor', or a classifier or regressor of skdp "
            "such as DPLogisticRegression; for a search make a pipeline of what it tries first, "
            f"DPGridSearchCV(tabular_pipeline(...), ...); got {estimator!r}"
        )
    return clone(model)
