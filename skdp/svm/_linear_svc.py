"""Linear support vector classification with differential privacy."""

from skdp._losses._classes import BinaryHuberisedHingeLoss, MulticlassHuberisedHingeLoss
from skdp.linear_model._centre import with_check, with_class_centre
from skdp.linear_model._classifier import PrivateLinearClassifier, hinge_task
from skdp.linear_model._data_norm import WeightsFit, plan_rows
from skdp.linear_model._mechanism_choice import choose_mechanism
from skdp.linear_model._output_perturbation import check_strength
from skdp.utils._validation import check_choice, check_within


class DPLinearSVC(PrivateLinearClassifier):
    r"""Linear support vector classifier by noisy clipped gradients or output perturbation.

    The regularised Huberised hinge loss is minimised by noisy steps, or to a certified gradient
    norm before noise is added to the weights. Several classes are fitted jointly, by the multiclass
    hinge of Crammer and Singer with the same rounding. A share of epsilon pays for noisy class
    frequencies, which weights shrink to, and with C="auto" one for a check of the weights, which
    move back towards these frequencies as far as they explain no more than chance; at least a tenth
    of them is kept. Rows longer than `data_norm` are scaled down to it in `fit` only, or their
    gradients are clipped.

    Parameters
    ----------
    {epsilon}
    {delta}
    {data_norm}
    {fit_intercept}
    {intercept_scaling}
    {classes}
    C : float or "auto", default="auto"
        Inverse regularisation strength as in scikit-learn: the objective is the summed loss
        times C plus half the squared norm of all weights, the intercept's included. The noise
        on the minimiser grows with C. "auto" balances regularisation against noise from public
        quantities, and the intercept's distance from noisy class frequencies counts.
    huber_threshold : float, default=0.5
        Half the width h of the margins over which the hinge's corner is rounded, between 1e-4
        and 1e4. The loss is at most h / 4 (several classes: h / 2) above the hinge. The noise
        does not depend on it; small values take longer to fit.
    mechanism : {"auto", "output", "gradient"}, default="auto"
        "output" adds noise to the minimiser, "gradient" to the clipped gradients of the steps of an
        accelerated descent. "auto" takes what is expected to lose less, by public quantities.
    {accountant}
    {random_state}
    {verbose}

    Attributes
    ----------
    {classes_}
    {coef_}
    {intercept_}
    C_ : float
        The regularisation used, from public quantities.
    {data_norm_}
    {n_features_in_}
    {feature_names_in_}
    {privacy_}

    Raises
    ------
    {raises}

    Notes
    -----
    A fit is (`epsilon`, `delta`)-differentially private under the accountant's relation with
    the row as the unit. The numbers of rows and columns are public. The proof is in
    ``docs/guarantees.md``. With little noise and a small `huber_threshold` the answer is that of
    scikit-learn's ``LinearSVC(loss="hinge")``, for several classes with
    ``multi_class="crammer_singer"``.

    References
    ----------
    K. Chaudhuri, C. Monteleoni and A. D. Sarwate. Differentially private empirical risk
    minimization. JMLR 12, 2011.

    K. Crammer and Y. Singer. On the algorithmic implementation of multiclass kernel-based
    vector machines. JMLR 2, 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from skdp import DPLinearSVC
    >>> X, y = make_classification(n_samples=5000, n_features=5, random_state=0)
    >>> model = DPLinearSVC(epsilon=1.0, delta=1e-6, data_norm=3.0).fit(X, y)
    >>> model.coef_.shape
    (1, 5)
    """

    C: float | str = "auto"
    huber_threshold: float = 0.5
    mechanism: str = "auto"

    def plan_fit(self, shape, guarantee):
        h = check_within(self.huber_threshold, "huber_threshold", 1e-4, 1e4)
        C, k = check_strength(self.C, "C"), len(self._planned_classes(shape))
        loss = BinaryHuberisedHingeLoss(h) if k == 2 else MulticlassHuberisedHingeLoss(k, h)
        expected = hinge_task(loss, loss.slope_bound, 1.0)
        rows = plan_rows(self, shape.n_rows, guarantee)
        if C is None:
            rows = with_class_centre(rows, shape.n_rows, [1.0] * k, largest=1.0)
        rows = with_check(rows, shape)
        mechanism = check_choice(self.mechanism, "mechanism", ("auto", "output", "gradient"))
        choice = choose_mechanism(mechanism, C, rows, shape, expected, rival="output")
        return WeightsFit.of(choice, rows)

    def _released(self, run, plan):
        return run | {"C_": plan.weights.C}
