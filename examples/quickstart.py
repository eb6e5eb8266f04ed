"""
A first private model, and the cost of privacy
==============================================

Run it as ``python examples/quickstart.py [folder]``. The table is simulated by `skdp.datasets`:
20,000 customers, some of whom renew their contract, according to a formula chosen for
demonstration. The documentation gives accuracies on real tables. If you pass a folder that contains
``adult_train.csv.gz`` (or the environment variable SKDP_DATA names one), the table is Adult, from a
census.
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
    """Return a table, its target, and the public bounds and categories of its columns."""
    if not folder:
        people = make_customers()
        return people.data, people.target, people.schema
    import pandas as pd

    table = pd.read_csv(Path(folder) / "adult_train.csv.gz")
    schema = {"bounds": BOUNDS, "categories": {k: v.split() for k, v in CATEGORIES.items()}}
    return table[[*BOUNDS, *CATEGORIES]], table["target"], schema


X, y, schema = load(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SKDP_DATA"))
X, X_test, y, y_test = train_test_split(X, y, test_size=0.25, random_state=0)
print(f"{len(y):,} training rows with {X.shape[1]} columns, {len(y_test):,} test rows\n")

accountant = PrivacyAccountant(epsilon=3.0, delta=1e-6)
model = DPAdditiveClassifier(epsilon=1.0, delta=1e-6, **schema, accountant=accountant).fit(X, y)
print("Promised: whoever sees the model learns little about any one row.")
print(f"  epsilon = {model.privacy_.epsilon:g}: to recognize more than 14 % of the members, an")
print("  attacker must wrongly accuse more than 5 % of the others")

# For comparison, a model without privacy. The encoder learns nothing from the data.
encoder = DPTableVectorizer(numeric="scaled", **schema).fit(X)
exact = HistGradientBoostingClassifier(max_iter=60).fit(encoder.transform(X).toarray(), y)
private = model.decision_function(X_test)
boosted = exact.decision_function(encoder.transform(X_test).toarray())
print("\nAUC on test rows (guessing has 0.5)")
print(f"  private                         {roc_auc_score(y_test, private):.3f}")
print(f"  gradient boosting, not private  {roc_auc_score(y_test, boosted):.3f}")

spent, left = accountant.epsilon_spent, accountant.epsilon_remaining
print(f"\nBudget: epsilon {spent:g} of {accountant.epsilon:g} spent, {left:g} left")
try:
    from skdp.display import AdditiveDisplay

    picture = Path("quickstart.png").resolve()
    AdditiveDisplay.from_estimator(model, max_terms=8).figure_.savefig(picture, dpi=80)
    print(f"Picture: {picture}\n  shows the effect of each column on a row's score")
except ImportError:
    print('No picture, matplotlib is missing: pip install "matplotlib>=3.8"')
