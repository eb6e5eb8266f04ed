"""Linear regression by noisy stochastic gradients."""

from dataclasses import replace

from skdp._losses._numbers import HuberLoss
from skdp.base import private_fit_method
from skdp.ledger import PrivacyAccountant
from skdp.linear_model._center import with_mean_center
from skdp.linear_model._dp_sgd import PrivateSGDModel
from skdp.linear_model._regressor import PrivateLinearRegressor
from skdp.linear_model._ridge import TASK
from skdp.utils._validation import check_choice, check_positive, is_auto

LOSSES = ("squared_error", "huber")

# In units of half the range of targets.
HUBER_THRESHOLD = 0.2


class DPSGDRegressor(PrivateSGDModel, PrivateLinearRegressor):
    """Linear regression by noisy stochastic gradients (DP-SGD).

    Each step takes a batch of rows, clips each row's gradient, adds noise to their sum and moves
    the weights by the result. Targets and predictions are clipped to `target_bounds`. Everything
    that is not given follows from public quantities by a rule that is written down in
    ``docs/dp_sgd.md``. The last steps check the weights, which move back towards the noisy mean as
    far as they explain no more than chance.

    Parameters
    ----------
    epsilon : float, default=1.0
        The epsilon of a call of `fit` or of `partial_fit`, positive.
    delta : float, default=1e-6
        Its delta, in [0, 1). With 0 gradients are clipped in L1 norm and noise is Laplace's.
    data_norm : float, default=1.0
        The norm that rows are expected to have, between 1e-50 and 1e50: automatic settings are
        made for it. Longer rows are not scaled, their gradients are clipped; no guarantee rests
        on it. It must not be computed from the data.
    fit_intercept : bool, default=True
        Whether to add a constant feature of value ``intercept_scaling * data_norm``, whose
        coefficient makes the intercept. It counts in a gradient's norm.
    intercept_scaling : float, default=0.3
        The size of the constant feature relative to `data_norm`.
    target_bounds : tuple of (low, high)
        The range of targets, low < high. It must be given and must not be computed from the
        data.
    loss : {"squared_error", "huber"}, default="squared_error"
        Half the squared residual, or Huber's: linear beyond `huber_threshold`.
    penalty : {"l2", None}, default="l2"
        What is added to the mean loss: alpha times half the squared norm of `coef_`. The
        intercept is not penalized; in `fit` it is held to a noisy mean, which a share of epsilon
        pays for, as far as there is noise.
    alpha : float or "auto", default="auto"
        The strength of the penalty as in scikit-learn, at least 0. "auto" balances it against
        the noise.
    max_grad_norm : float or "auto", default="auto"
        The bound on the norm of a row's gradient, the intercept's included, for targets in units
        of half their range: L2, or L1 with delta = 0. "auto" clips rows of norm `data_norm` whose
        residual exceeds a quarter of the range, or Huber's threshold.
    sampling : {"auto", "full", "poisson", "without_replacement"}, default="auto"
        "full": all rows in each step. "poisson" (delta > 0): each row with the same probability,
        independently. "without_replacement" (delta = 0): batches of fixed size. "auto" takes all
        rows where that is affordable or no `batch_size` less than all is given.
    batch_size : int or "auto", default="auto"
        Rows of a step, under "poisson" expected ones, at most the number of rows.
    max_iter : int or "auto", default="auto"
        Epochs: the steps are as many as batches of `batch_size` make that many passes over as
        many rows as there are. There is no early stopping.
    optimizer : {"nesterov", "sgd", "adam"}, default="nesterov"
        How gradients move the weights.
    learning_rate : {"constant", "invscaling", "linear"}, default="constant"
        Of step t of T: eta0, ``eta0 / t**power_t`` or ``eta0 * (T + 1 - t) / T``.
    eta0 : float or "auto", default="auto"
        The first learning rate. "auto" takes what the curvature of the loss allows.
    power_t : float, default=0.5
        The exponent of "invscaling".
    momentum : float or "auto", default="auto"
        In [0, 1). "auto" is Nesterov's for the condition number, 0 for "sgd", .9 for "adam".
    average : bool, default=True
        Whether the weights are the mean of the iterates of the last half instead of the last.
    projection_radius : float, default=None
        Weights, for targets in units of half their range, are projected on the ball of this norm
        after each step. None: on none.
    partial_fit_rows : {"any", "disjoint"}, default="any"
        What is known of the rows of several calls of `partial_fit`. "any": nothing, each call
        adds to the spend. "disjoint" declares that no row is in two of them: in the ledger the
        calls are parts of one partition, of which the worst counts (under "replace_one" the two
        worst).
    huber_threshold : float or "auto", default="auto"
        In the units of targets, positive. "auto" is a tenth of their range.
    accountant : PrivacyAccountant, default=None
        The accountant that is charged before anything is computed from the data. With None
        nothing is recorded, and the guarantee holds under "add_remove".
    random_state : int or None, default=None
        None draws batches and noise from the operating system's cryptographic generator. An int
        makes them reproducible and the noise thereby removable by whoever knows it.
    verbose : int, default=0
        0 is silent, 1 prints the charge and, for fits that take steps, about ten progress lines,
        2 prints one line per epoch. No loss is printed, since the guarantee would not cover it.
        scikit-learn's callbacks (1.9 and later, ``set_callbacks``) receive the same progress.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Noisy coefficients.
    intercept_ : float
        Noisy intercept, 0 without `fit_intercept`.
    target_bounds_ : tuple of (float, float)
        The bounds that predictions are clipped to.
    n_iter_ : int
        The epochs that were planned.
    alpha_, max_grad_norm_, eta0_, momentum_ : float
        The settings used.
    batch_size_ : int
        The batch size used.
    sampling_ : str
        The sampling used.
    noise_multiplier_ : float
        The scale of a step's noise over what one row, or person, moves its sum by.
    n_partial_fits_ : int
        After `partial_fit`: how many calls there were.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of features seen during `fit`, if X has names that are all strings.
    privacy_ : PrivacyStatement
        What is guaranteed of the model: of all its calls together, and under which assumptions.

    Raises
    ------
    ValueError
        If a parameter or the data are not as described; nothing was charged.
    BudgetExceededError
        If the accountant refuses.

    Notes
    -----
    A call is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit, whatever the rows. The numbers of rows and columns are public. The proofs
    are in ``docs/dp_sgd.md``.

    References
    ----------
    R. Bassily, A. Smith and A. Thakurta. Private empirical risk minimization: efficient
    algorithms and tight error bounds. FOCS 2014.

    M. Abadi et al. Deep learning with differential privacy. CCS 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(20_000, 2))
    >>> y = X @ [1.0, -2.0] + 3.0 + 0.1 * rng.normal(size=20_000)
    >>> model = DPSGDRegressor(epsilon=1.0, target_bounds=(0, 6)).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        *,
        delta: float = 1e-6,
        data_norm: float | str = 1.0,
        fit_intercept: bool = True,
        intercept_scaling: float = 0.3,
        target_bounds: tuple[float, float] | None = None,
        loss: str = "squared_error",
        penalty: str | None = "l2",
        alpha: float | str = "auto",
        max_grad_norm: float | str = "auto",
        sampling: str = "auto",
        batch_size: int | str = "auto",
        max_iter: int | str = "auto",
        optimizer: str = "nesterov",
        learning_rate: str = "constant",
        eta0: float | str = "auto",
        power_t: float = 0.5,
        momentum: float | str = "auto",
        average: bool = True,
        projection_radius: float | None = None,
        partial_fit_rows: str = "any",
        huber_threshold: float | str = "auto",
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.target_bounds = target_bounds
        self.loss = loss
        self.penalty = penalty
        self.alpha = alpha
        self.max_grad_norm = max_grad_norm
        self.sampling = sampling
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.momentum = momentum
        self.average = average
        self.projection_radius = projection_radius
        self.partial_fit_rows = partial_fit_rows
        self.huber_threshold = huber_threshold
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    @private_fit_method
    def fit(self, X, y, *, groups=None):
        """Fit the model and charge the accountant.

        Parameters
        ----------
        X : array-like, DataFrame, ChunkedArray or what it reads, of shape (n_samples, n_features)
            Rows; linear models take a sparse matrix too. Data larger than memory are read block by
            block.
        y : array-like of shape (n_samples,)
            Labels; or targets, which are clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : estimator
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are invalid; nothing was charged.
        BudgetExceededError
            If the accountant refuses the charge; nothing was computed and nothing is fitted.
        """
        return self._fit(X, y, groups)

    @private_fit_method
    def partial_fit(self, X, y, *, groups=None):
        """Go on from the released weights with more rows, as one more private run.

        Each call runs all the steps of a fit on its rows and is charged as one, see
        `partial_fit_rows`. If it fails or is refused the estimator stays as it was.

        Parameters
        ----------
        X : array-like, sparse matrix or what ChunkedArray reads, of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Targets; clipped to `target_bounds`.
        groups : array-like of shape (n_samples,), default=None
            Person id of each row. The privacy unit is then the person, however many rows each has,
            and a row has the weight 1 / (rows of its person); see ``docs/persons.md``. Requires an
            accountant with unit="person", or none.

        Returns
        -------
        self : DPSGDRegressor
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described; nothing was charged.
        BudgetExceededError
            If the accountant refuses.
        """
        return self._go_on(X, y, groups)

    def _with_center(self, rows, shape):
        return with_mean_center(rows, shape.n_rows)

    def _task(self, shape):
        units = self._units
        if max(abs(units.low), abs(units.high)) > 1e100:
            raise ValueError("target_bounds must lie within -1e100 and 1e100")
        if check_choice(self.loss, "loss", LOSSES) == "squared_error":
            return replace(TASK, loss=HuberLoss())
        threshold = HUBER_THRESHOLD
        if not is_auto(self.huber_threshold):
            threshold = check_positive(self.huber_threshold, "huber_threshold") / units.half
        if not 1e-50 <= threshold <= 1e50:
            raise ValueError(f"huber_threshold={self.huber_threshold!r} is out of range")
        return replace(TASK, loss=HuberLoss(threshold), slope=min(1.0, threshold))
