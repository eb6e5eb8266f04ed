"""Plain models of cells, the bins and categories of columns, and of what each cell adds."""

import copy
from dataclasses import dataclass
from numbers import Real

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, MinMaxScaler, OneHotEncoder, StandardScaler

from skdp.utils._frames import objects

# Where the bounds are 0 and 1: what stands for a missing number, and from where on numbers do.
MISSING, FROM = 2.0, 1.5


def holding(plain, names=None, **released):
    """Return a plain estimator with released values as its fitted attributes.

    Parameters
    ----------
    plain : estimator
    names : ndarray of str, default=None
        The columns of the table that the model was fitted to, if it had names.
    **released : dict
    """
    known = {} if names is None else {"feature_names_in_": names}
    vars(plain[0] if hasattr(plain, "steps") else plain).update(known, **released)
    return plain


def nameless(model):
    """Return a model that takes arrays without a warning."""
    model = copy.copy(model)
    vars(model).pop("feature_names_in_", None)
    return model


def clipping(low, high):
    """Return a plain scaler that clips columns to bounds, and maps the bounds to 0 and 1."""
    scale = 1.0 / (high - low)
    return holding(
        MinMaxScaler(clip=True), scale_=scale, min_=-low * scale, n_features_in_=len(low)
    )


def binning(edges, encode="onehot-dense"):
    """Return a plain discretizer of columns between edges."""
    sizes = np.array([len(own) - 1 for own in edges])
    plain = KBinsDiscretizer(np.maximum(sizes, 2), encode=encode, strategy="uniform")
    # A constant column gets one bin.
    return holding(plain.fit([0 * sizes, sizes > 1]), bin_edges_=objects(edges))


def matrix(weights):
    """Return a plain transformer that multiplies rows by weights, one row of them an output."""
    known = {"components_": weights, "n_features_in_": weights.shape[1]}
    return holding(TruncatedSVD(len(weights)), **known)


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a column.

    Parameters
    ----------
    encoder : estimator
        Plain; one-hot.
    examples : list
        A value without a cell, or of the first one; and then a value of each cell.
    """

    encoder: object
    examples: list


def label_cells(categories, missing=False):
    """Return the `Cells` of a column of labels; a missing one has a cell if it is asked for."""
    labels = categories.tolist()
    if all(isinstance(label, Real) for label in labels):
        labels = np.sort(np.array([*labels, *[np.nan] * missing], dtype=np.float64))
    else:
        labels = objects([*dict.fromkeys([*labels, None]), np.nan] if missing else labels)
    known = {"categories": [labels], "handle_unknown": "ignore", "sparse_output": False}
    unknown = "?".join(map(str, ["", *labels]))
    return Cells(OneHotEncoder(**known).fit(labels[:1, np.newaxis]), [unknown, *labels])


def number_cells(edges, missing=False):
    """Return the `Cells` of a column of numbers; a missing one has a cell if it is asked for."""
    middles = edges[:-1] + 0.5 * np.diff(edges)
    if not missing:
        return Cells(binning([edges]), [middles[0], *middles])
    scaler = clipping(edges[:1], edges[-1:])
    starts = scaler.transform(edges[:-1, np.newaxis])[:, 0]
    filled = SimpleImputer().fit([[MISSING]])
    encoder = make_pipeline(scaler, filled, binning([np.append(starts, [FROM, MISSING])]))
    return Cells(encoder, [middles[0], *middles, np.nan])


@dataclass(frozen=True, eq=False, kw_only=True)
class CellSum:
    """What the cells of a row add up to.

    Parameters
    ----------
    encoder : ColumnTransformer
        Plain; one-hot.
    coef_ : ndarray of shape (n_outputs, n_cells)
    intercept_ : ndarray of shape (n_outputs,)
    """

    encoder: object
    coef_: np.ndarray
    intercept_: np.ndarray

    @classmethod
    def of(cls, model, cells, evaluate):
        """Return the sum that ``evaluate(model, X)`` is, from its values at a made row a cell."""
        first = [own.examples[0] for own in cells]
        rows = [first]
        for j, own in enumerate(cells):
            rows += [[*first[:j], value, *first[j + 1 :]] for value in own.examples[1:]]
        rows = np.array(rows, dtype=object)
        values = evaluate(nameless(model), rows)
        names = getattr(model, "feature_names_in_", None)
        parts = [
            (f"cells{j}", holding(own.encoder, None if names is None else names[j : j + 1]), [j])
            for j, own in enumerate(cells)
            if own.examples[1:]
        ]
        frozen = [(name, FrozenEstimator(part), place) for name, part, place in parts]
        encoder = ColumnTransformer(frozen, sparse_threshold=0.0, verbose_feature_names_out=False)
        encoder.fit(rows[:1])
        return cls(
            encoder=holding(encoder, names, transformers=parts, transformers_=parts),
            coef_=(values[1:] - values[0]).T,
            intercept_=values[0],
        )

    def transformer(self):
        """Return a plain transformer that computes it."""
        if np.array_equal(self.coef_, np.eye(self.coef_.shape[1])) and not self.intercept_.any():
            return self.encoder
        shift = holding(StandardScaler(with_std=False), mean_=-self.intercept_, scale_=None)
        return make_pipeline(self.encoder, matrix(self.coef_), shift)
