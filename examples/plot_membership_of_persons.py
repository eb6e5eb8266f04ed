"""
Membership inference on authors with many texts
===============================================

A single row may reveal little. But an author who is in the table has many rows, and an attacker can
add up the evidence of all of them. Here authors wrote up to forty texts each, which depend on the
author's style, and half of the authors are in the table. ``groups`` holds the author of each row:
all rows of an author are in the table or none, and the attack is on authors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

from skdp import DPLogisticRegression, PrivacyAccountant
from skdp.audit import membership_inference
from skdp.display import MembershipInferenceDisplay

plt.style.use("tableau-colorblind10")
rng = np.random.default_rng(0)
n_authors, n_columns = 200, 100
n_texts = rng.integers(1, 41, n_authors)
author = np.repeat(np.arange(n_authors), n_texts)
style = rng.normal(size=(n_authors, n_columns))
X = 0.4 * style[author] + rng.normal(size=(len(author), n_columns))
X /= np.linalg.norm(X, axis=1, keepdims=True)
# An author's preference is independent of the style, so a model can only memorize.
y = rng.integers(0, 2, n_authors)[author]

# %%
# Two models, three attacks
# -------------------------
#
# The plain model is attacked text by text and author by author. The private model has an accountant
# with ``unit="person"``, so the rows of an author share the weight of one row: ε = 1 protects
# all of them together, however many there are.

epsilon = 1.0
accountant = PrivacyAccountant(epsilon=epsilon, delta=0.0, unit="person")
plain = LogisticRegression(C=1.0)
private = DPLogisticRegression(epsilon, delta=0.0, mechanism="output", accountant=accountant)
options = {"groups": author, "n_shadow": 32, "random_state": 0}
authors = membership_inference(plain, X, y, **options)
protected = membership_inference(private, X, y, **options)

# One text of each author, against the same model: the mean over an author's texts is that text.
members = authors.members[author]
plain.fit(X[members], y[members])
first = np.unique(author, return_index=True)[1]
texts = membership_inference(
    plain, X[first], y[first], attack="loss", members=members[first], random_state=0
)
found = {"plain, by a text": texts, "plain, by author": authors, "private, by author": protected}
for name, result in found.items():
    print(f"{name:<20} area {result.auc}  found at 1 % {result.tpr_at[0.01]}")
many = np.where(n_texts > 20, "more than 20 texts", "up to 20 texts")
for name, result in authors.by_group(many).items():
    print(f"plain, authors with {name}: area {result.auc}")

# %%
# **Result:** one text reveals little about its author. All texts together reveal most of the plain
# model's authors, above all those with many texts: the curve leaves the region that ε = 1 per
# person allows. The curve of the private model stays in it.

display = MembershipInferenceDisplay.from_results(found, epsilon=epsilon)
display.plot()
display.ax_.set_title(f"{n_authors} authors with 1 to 40 texts each: who is in the table?")
plt.show()
