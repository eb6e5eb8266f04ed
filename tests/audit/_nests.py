"""Private estimators in nests of scikit-learn's containers, drawn by a seed, and leaky copies."""

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomTreesEmbedding
from sklearn.impute import SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder
from sklearn.preprocessing import StandardScaler as SklearnScaler

from skdp import (
    DPPCA,
    DPHistogramTransformer,
    DPLogisticRegression,
    DPMeanTransformer,
    DPOneHotEncoder,
    DPRidge,
    DPSGDClassifier,
    DPSimpleImputer,
    DPStandardScaler,
    DPTargetEncoder,
    PrivacyAccountant,
)

# So little that what fewer than a hundred fits certify can be above the claim of a nest.
EPSILON = 0.08
BESIDE = 0.02
N_ROWS = 24
BEYOND = 1e3
CATEGORICAL = ("one-hot", "target encoder")
LEDGERS = {"add_remove": None, "replace_one": PrivacyAccountant(1e6, 0.5, relation="replace_one")}


def subjects(relation, epsilon=EPSILON):
    """The private estimators, each with a claim of epsilon."""
    terms = {"epsilon": epsilon, "accountant": LEDGERS[relation]}
    pure = terms | {"delta": 0.0}
    declared = {"categories": ["x", "z"]}
    return {
        "mean": DPMeanTransformer(bounds=(-1, 1), **pure),
        "scaler": DPStandardScaler(bounds=(-1, 1), **pure),
        "histogram": DPHistogramTransformer(bounds=(-1, 1), edges="uniform", n_bins=3, **pure),
        "imputer": DPSimpleImputer(bounds=(-1, 1), **pure),
        "pca": DPPCA(n_components=1, **terms),
        "one-hot": DPOneHotEncoder(sparse_output=False, min_frequency=2, **declared, **pure),
        "target encoder": DPTargetEncoder(target_bounds=(0, 1), **declared, **pure),
        "logistic": DPLogisticRegression(mechanism="output", C=1.0, classes=[0, 1], **pure),
        "ridge": DPRidge(target_bounds=(0, 1), **terms),
        "sgd": DPSGDClassifier(sampling="full", max_iter=2, classes=[0, 1], **terms),
    }


@dataclass(frozen=True, eq=False)
class Case:
    """A nest, tables for it, and the claim."""

    nest: object
    X: object
    y: np.ndarray
    canary: tuple
    replacement: tuple | None
    relation: str
    epsilon: float
    delta: float

    def options(self):
        return {
            "method": "two_worlds",
            "canary": self.canary,
            "replacement": self.replacement,
            "relation": self.relation,
            "epsilon": self.epsilon,
            "delta": self.delta,
        }


def make_case(name, relation, seed, *, epsilon=EPSILON, change=None, alone=False):
    """Draw a nest around a subject, with crowds at one end of what is declared.

    The canary is far beyond the other end. With `alone` nothing else in the nest is private;
    `change` makes a leaky copy of the subject.
    """
    random = np.random.default_rng(seed)
    subject = subjects(relation, epsilon)[name]
    subject = subject if change is None else change(subject)
    is_model, is_frame = is_classifier(subject) or is_regressor(subject), bool(random.integers(2))
    X, canary, y = _table(name, subject)
    usual = (list(X[0]), y[0])
    if is_frame:
        X = pd.DataFrame(X, columns=list("abc")).astype({"c": float})
        X = X if name in CATEGORICAL else X.astype(float)
    beside = [] if alone or is_model else [_mean_of_the_rest(relation)]
    columns = list("abc") if is_frame else [0, 1, 2]
    if is_model:
        nest = Pipeline(
            [
                ("prepare", _nest(FunctionTransformer(), random, columns, beside)),
                ("model", _wrapped(subject, random)),
            ]
        )
    else:
        nest = _nest(subject, random, columns, beside)
    claim = _claim(nest)
    replacement = usual if relation == "replace_one" else None
    return Case(nest, X, y, (canary, 1), replacement, relation, *claim)


def _mean_of_the_rest(relation):
    return DPMeanTransformer(BESIDE, bounds=(0, 1), accountant=LEDGERS[relation])


def _table(name, subject):
    X, canary, y = np.tile([-1.0, -1.0, 0.5], (N_ROWS, 1)), [BEYOND, BEYOND, 0.5], np.zeros(N_ROWS)
    if name in CATEGORICAL:
        X = np.tile(np.array(["x", "x", 0.5], dtype=object), (N_ROWS, 1))
        canary = ["z", "z", 0.5]
    elif name == "imputer":
        X[::5, 0] = np.nan
    elif name == "pca" or is_classifier(subject) or is_regressor(subject):
        X[:, :2], canary[1] = [0.1, -0.1], 0.0
    if is_classifier(subject):
        y = np.arange(N_ROWS) % 2
    return X, canary, y


def _wrapped(model, random):
    """Return a model, in a meta-estimator of scikit-learn or not.

    Ensembles are left out: they give what is in them seeds, which they keep.
    """
    kind = random.integers(3)
    if kind == 0 and is_classifier(model):
        return OneVsRestClassifier(model)
    return Pipeline([("inner", model)]) if kind == 1 else model


def _nest(part, random, columns, beside):
    """Return a transformer in one to three containers; `columns` are those of the table."""
    private = columns[:2]
    for level in range(random.integers(1, 4)):
        kind = random.integers(3)
        other = beside[0] if beside and random.random() < 0.25 else None
        if kind == 0:
            steps = [("part", part)]
            steps = [("same", FunctionTransformer()), *steps] if random.integers(2) else steps
            part = Pipeline(steps)
        elif kind == 1 and level:
            others = [("passthrough", "drop", FunctionTransformer())[random.integers(3)]]
            part = FeatureUnion([("part", part), *((f"other{i}", o) for i, o in enumerate(others))])
        else:
            chosen = [slice(0, 2), [0, 1], [True, True, False], private][random.integers(4)]
            # Within other containers there are the columns that were chosen before.
            chosen = private if level == 0 else columns[:2] if chosen is private else chosen
            remainder = other or ("drop", "passthrough", FunctionTransformer())[random.integers(3)]
            part = ColumnTransformer([("part", part, chosen)], remainder=remainder)
            columns = list(columns)
    return part


def _claim(nest):
    """Add what every private estimator of a nest claims."""
    epsilon, delta, stack = 0.0, 0.0, [nest]
    while stack:
        estimator = stack.pop()
        if hasattr(estimator, "steps"):
            inner = [step for _, step in estimator.steps]
        elif hasattr(estimator, "transformer_list"):
            inner = [step for _, step in estimator.transformer_list]
        elif hasattr(estimator, "transformers"):
            inner = [step for _, step, _ in estimator.transformers] + [estimator.remainder]
        elif hasattr(estimator, "estimator"):
            inner = [estimator.estimator]
        else:
            inner = []
            epsilon += getattr(estimator, "epsilon", 0.0)
            delta += getattr(estimator, "delta", 0.0)
        stack += inner
    return epsilon, delta


def leaky(fit):
    """Return what makes a copy of an estimator whose fit is another: (self, fit, X, y) -> None."""

    def change(estimator):
        base = type(estimator)

        def changed(self, X, y=None):
            fit(self, lambda: base.fit(self, X, y), X, y)
            return self

        copy = type(f"Leaky{base.__name__}", (base,), {"fit": changed})
        return copy(**estimator.get_params(deep=False))

    return change


def _with_less_noise(factor):
    def fit(self, honest_fit, X, y):
        self.epsilon, claimed = factor * self.epsilon, self.epsilon
        honest_fit()
        self.epsilon = claimed

    return leaky(fit)


@leaky
def no_clip(self, honest_fit, X, y):
    honest_fit()
    X = np.asarray(X, dtype=float)
    self.mean_ = self.mean_ + np.mean(X - np.clip(X, -1, 1), axis=0)


@leaky
def one_noise(self, honest_fit, X, y):
    honest_fit()
    exact = np.clip(np.asarray(X, dtype=float), -1, 1).mean(axis=0)
    self.mean_ = exact + (self.mean_[0] - exact[0])


@leaky
def raw_attribute(self, honest_fit, X, y):
    honest_fit()
    self.categories_seen_ = sorted({str(value) for value in np.asarray(X).ravel()})


@leaky
def hidden_attribute(self, honest_fit, X, y):
    honest_fit()
    self._cache = {"sums": [float(np.sum(np.asarray(X, dtype=float)))]}


def after(step):
    return lambda estimator: Pipeline([("learns", step), ("private", estimator)])


def beside(step):
    return lambda estimator: FeatureUnion([("learns", step), ("private", estimator)])


def in_columns_of_unknown_density(estimator):
    """`sparse_output_` of a ColumnTransformer says whether most of a column is zeros."""
    encode = clone(estimator).set_params(sparse_output=True, min_frequency=None)
    return ColumnTransformer([("encode", encode, [0, 1])], sparse_threshold=0.49)


half_noise, quarter_noise = _with_less_noise(2.0), _with_less_noise(4.0)
no_noise = _with_less_noise(1e6)
embedding = RandomTreesEmbedding(n_estimators=2, sparse_output=False, random_state=0)
# Subject, what is wrong, relation.
LEAKS = [
    ("mean", half_noise, "add_remove"),
    ("mean", half_noise, "replace_one"),
    ("histogram", quarter_noise, "replace_one"),
    ("mean", no_noise, "add_remove"),
    ("scaler", no_noise, "replace_one"),
    ("logistic", no_noise, "add_remove"),
    ("ridge", no_noise, "replace_one"),
    ("pca", no_noise, "add_remove"),
    ("target encoder", no_noise, "replace_one"),
    ("one-hot", no_noise, "add_remove"),
    ("mean", no_clip, "add_remove"),
    ("mean", no_clip, "replace_one"),
    ("one-hot", raw_attribute, "add_remove"),
    ("histogram", hidden_attribute, "replace_one"),
    ("sgd", hidden_attribute, "add_remove"),
    ("mean", one_noise, "replace_one"),
    ("mean", after(SklearnScaler()), "add_remove"),
    ("one-hot", beside(OneHotEncoder(sparse_output=False)), "replace_one"),
    ("imputer", beside(SimpleImputer()), "add_remove"),
    ("pca", after(embedding), "replace_one"),
]


def make_leak(number):
    """Return the nest of a leak and how many fits find it."""
    name, change, relation = LEAKS[number]
    noisy = change in (half_noise, quarter_noise)
    epsilon = {"add_remove": 1.0, "replace_one": 2.0}[relation] if noisy else EPSILON
    case = make_case(name, relation, 1000 + number, epsilon=epsilon, change=change, alone=True)
    if change is one_noise:
        # Noise that columns share cancels where a row is not the same in both.
        case = replace(case, canary=([BEYOND, -1.0, 0.5], 1))
    return case, 1200 if noisy else 80
