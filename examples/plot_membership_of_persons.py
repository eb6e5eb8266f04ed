"""
Authors with many texts: rows are protected, persons are not
============================================================

A model that is private for a row says nothing of persons with thirty. Their rows are alike, and the
attacker adds up what each of them gives away. Here authors wrote thirty texts each, which differ by
the author's style, and half of the authors are in the table. The attack looks for authors: ``groups``
says whose each row is.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.audit import membership_inference
from skdp.display import MembershipInferenceDisplay

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_authors, n_texts, n_columns = 200, 30, 100
author = np.repeat(np.arange(n_authors), n_texts)
style = rng.normal(size=(n_authors, n_columns))
X = style[author] + 0.3 * rng.normal(size=(len(author), n_columns))
X /= np.linalg.norm(X, axis=1, keepdims=True)
# What an author likes has nothing to do with the style, so that all there is to learn is by heart.
y = rng.integers(0, 2, n_authors)[author]

# %%
# Three models
# ------------
#
# Plain, private for a row at ε = 1, and private for a person at ε = 1. The last one's accountant has
# ``unit="person"``: the rows of an author then share what one row may move.

epsilon = 1.0
persons = PrivacyAccountant(epsilon=epsilon, delta=0.0, unit="person")
given = {"delta": 0.0, "mechanism": "output", "C": 0.3}
models = {
    "scikit-learn": LogisticRegression(C=10.0),
    "ε = 1 of a row": DPLogisticRegression(epsilon, **given),
    "ε = 1 of a person": DPLogisticRegression(epsilon, accountant=persons, **given),
}
found = {
    name: membership_inference(model, X, y, groups=author, n_shadow=24, random_state=0)
    for name, model in models.items()
}
for name, result in found.items():
    print(f"{name:<20} area {result.auc}  found at 1 % {result.tpr_at[0.01]}")

# %%
# **What to see:** authors are found in the plain model, and nearly as well in the one that protects
# rows: both curves leave the region that ε = 1 allows. That is no fault, as thirty rows together are
# protected by ε = 30 only. The curve of the model that protects persons stays in the region.

display = MembershipInferenceDisplay.from_results(found, epsilon=epsilon)
display.plot()
display.ax_.set_title(f"{n_authors} authors with {n_texts} texts each: who is in the table?")
plt.show()
