"""One budget for all private steps of a pipeline."""

import math

from skdp.accounting import PrivacyAccountant, Reservation
from skdp.base import terms_of
from skdp.pipeline._planning import joint_scale, plan_pipeline
from skdp.utils._docstrings import documented
from skdp.utils._validation import check_privacy_parameters


@documented()
def split_budget(
    pipe,
    epsilon,
    delta=0.0,
    accountant=None,
    *,
    shares=None,
    n_samples=None,
    n_features=None,
    classes=None,
    public_steps=(),
):
    """Return a pipeline whose private steps share one budget, with their noise set together.

    The steps' own epsilons and deltas are as large as the tightest bound on their composition
    allows, so that all of them together cost (`epsilon`, `delta`): in general they add up to
    more. Each fit of the pipeline is one charge of (`epsilon`, `delta`), made when its first
    step runs; clones, folds, worker processes and refits are charged in the same way.

    Parameters
    ----------
    pipe : estimator
        A `Pipeline`, `ColumnTransformer` or `FeatureUnion`, nested in any way, or one estimator.
        It is not changed.
    epsilon : float
        What one fit of the whole pipeline costs, for the accountant's unit.
    delta : float, default=0.0
        Likewise. Every step that has a parameter `delta` gets its share.
    {accountant}
    shares : dict of str to float, default=None
        Each private step's share, by its name as in `set_params`, in any unit. By default the
        final estimator after k transformers gets ``0.85**k``, and the transformers share the
        rest equally; without a private final estimator all steps get the same.
    n_samples, n_features : int, default=None
        The shape of the table. With it every step is planned exactly, and every fit must be to
        a table of that shape. None leaves the shape open, as cross-validation needs; then
        steps whose noise depends on the shape are planned by their own (epsilon, delta), which
        composes less tightly.
    classes : array-like, default=None
        The labels of y, where steps do not declare them and there are other than two.
    public_steps : sequence of str, default=()
        Names of steps that learn from the data, declared not to need protection.

    Returns
    -------
    estimator
        A clone of `pipe` with `epsilon`, `delta` and `accountant` of each private step set.

    Raises
    ------
    ValueError
        If a step is neither private nor known to learn nothing and is not in `public_steps`,
        if a remainder gets no column of `n_features`, or if a parameter is out of range.

    Notes
    -----
    What is guaranteed, and why steps may run in any order and in several fits at once, is in
    ``docs/pipelines.md``. A step whose parameters are changed afterwards so that it would
    release something else than was planned is refused.

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
    if not (accountant is None or isinstance(accountant, PrivacyAccountant)):
        raise ValueError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    terms = terms_of(accountant)
    asked = {"classes": classes, "shares": shares, "public_steps": public_steps}
    plan = plan_pipeline(pipe, n_samples, n_features, terms=terms, **asked)
    # A group's delta is more than that of its rows together, however small their epsilon is.
    row = delta if terms.max_rows == 1 else 0.5 * math.exp(-epsilon) * delta / terms.max_rows
    scale = joint_scale(lambda s: plan.event(s * epsilon, row), epsilon, delta, terms)
    if accountant is None:
        return plan.with_budget(scale * epsilon, row)
    charges = plan.charges(scale * epsilon, row)
    plural = "s" if len(charges) > 1 else ""
    label = f"{type(pipe).__name__} of {len(charges)} private step{plural}"
    reservation = Reservation(accountant, charges, epsilon, delta, label)
    return plan.with_budget(scale * epsilon, row, reservation.steps)
