"""
A model's scores with their errors, for one charge
==================================================

`dp_evaluate` releases one noisy histogram of the scores of held-out rows by class. From it, all
metrics of a model with two classes are computed, with two intervals each: one for the noise alone,
and one that also contains the sampling error of the rows. The smaller the budget, the wider the
first interval; the second is never narrower than the sampling error.
"""

import matplotlib.pyplot as plt
from sklearn.metrics import RocCurveDisplay, roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPAdditiveClassifier, PrivacyAccountant, dp_evaluate
from skdp.datasets import make_customers

plt.style.use("tableau-colorblind10")

customers = make_customers(20_000)
X, X_test, y, y_test = train_test_split(customers.data, customers.target, random_state=0)
accountant = PrivacyAccountant(epsilon=2.0, delta=1e-5)
model = DPAdditiveClassifier(epsilon=1.0, delta=1e-6, **customers.schema, accountant=accountant)
model.fit(X, y)

# %%
# The report shows each metric next to its value for guessing the more frequent class.

report = dp_evaluate(model, X_test, y_test, epsilon=0.5, accountant=accountant)
print(report)
print(f"spent {accountant.epsilon_spent:g} of {accountant.epsilon:g}")

# %%
# **Result:** the figure shows the ROC curve and the calibration curve, with bands for the noise and
# for noise and sampling together, and the confusion matrix. The dashed ROC curve is that of the raw
# rows, which is not released.

display = report.plot()
probabilities = model.predict_proba(X_test)[:, 1]
RocCurveDisplay.from_predictions(
    y_test,
    probabilities,
    ax=display.axes_[0],
    name="raw rows (private)",
    curve_kwargs={"color": "C1", "linestyle": "--"},
)
display.axes_[0].legend(fontsize="small")
plt.show()

# %%
# With a tenth of the budget, the noise is larger than the sampling error, and the intervals show
# this.

exact = roc_auc_score(y_test, probabilities)
for epsilon in (0.05, 0.1, 0.2):
    score = dp_evaluate(model, X_test, y_test, epsilon=epsilon, accountant=accountant)["roc_auc"]
    low, high = score.interval
    print(
        f"epsilon {epsilon:<4g} AUC {score:.3f}, between {low:.3f} and {high:.3f} (raw {exact:.3f})"
    )
