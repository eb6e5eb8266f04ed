"""
A private model of a table, and what privacy costs it
=====================================================

Run it as ``python examples/quickstart.py [folder]``. The table is made by `skdp.datasets`: 20,000
customers, of whom some renew their contract, by a formula chosen for showing: how good models are
on real tables is said in the documentation. With a folder that holds ``adult_train.csv.gz`` (or one
that the environment variable SKDP_DATA names) it is Adult, from a census.
"""

import os
import sys
from pathlib import Path

from example_table import BOUNDS, CATEGORIES
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdp import DPAdditiveClassifier, DPTableVectorizer, PrivacyAccountant
from skdp.datasets import make_customers


def load(folder):
    """Return a table, its target, and what its form says of each column: ranges, categories."""
    if not folder:
        people = make_customers()
        return people.data, people.target, people.schema
    import pandas as pd

    table = pd.read_csv(Path(folder) / "adult_train.csv.gz")
    schema = {"bounds": BOUNDS, "categories": {k: v.split() for k, v in CATEGORIES.items()}}
    return table[[*BOUNDS, *CATEGORIES]], table["target"], schema


X, y, schema = load(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SKDP_DATA"))
X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
print(f"{len(y):,} rows of {X.shape[1]} columns to learn from, {len(y_test):,} to test on\n")

accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
model = DPAdditiveClassifier(epsilon=1.0, delta=1e-6, **schema, accountant=accountant).fit(X, y)
print("Promised: whoever sees the model learns little about any one row.")
print(f"  epsilon = {model.privacy_.epsilon:g}: to recognize more than 14 % of the members, an")
print("  attacker must wrongly accuse more than 5 % of the others")

# Beside it a model without privacy, on the same rows: this front learns nothing from the data.
front = DPTableVectorizer(numeric="scaled", **schema).fit(X)
exact = HistGradientBoostingClassifier(max_iter=60).fit(front.transform(X).toarray(), y)
private = model.decision_function(X_test)
boosted = exact.decision_function(front.transform(X_test).toarray())
print("\nHow well it tells test rows apart (AUC; guessing has 0.5)")
print(f"  private                         {roc_auc_score(y_test, private):.3f}")
print(f"  gradient boosting, not private  {roc_auc_score(y_test, boosted):.3f}")

spent, left = accountant.epsilon_spent, accountant.epsilon_remaining
print(f"\nBudget: epsilon {spent:g} of {accountant.epsilon:g} spent, {left:g} left")
try:
    from skdp.display import AdditiveDisplay

    picture = Path("quickstart.png").resolve()
    AdditiveDisplay.from_estimator(model, max_terms=8).figure_.savefig(picture, dpi=80)
    print(f"Picture: {picture}\n  shows what each column adds to a row's score")
except ImportError:
    print('No picture, matplotlib is missing: pip install "matplotlib>=3.8"')
