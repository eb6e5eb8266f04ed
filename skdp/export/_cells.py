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
    vars(plain).update(released)
    if names is not None:
        vars(plain[0] if hasattr(plain, "steps") else plain)["feature_names_in_"] = names
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


def label_encoder(categories, missing):
    """Return a plain one-hot encoder of categories, and of what is missing if that is asked for."""
    # Without a category, one that changes nothing.
    labels = categories.tolist() or ["?"]
    if all(isinstance(label, Real) for label in labels):
        labels = np.sort(np.array([*labels, *[np.nan] * missing], dtype=np.float64))
    else:
        labels = objects([*dict.fromkeys([*labels, None]), np.nan] if missing else labels)
    known = {"categories": [labels], "handle_unknown": "ignore", "sparse_output": False}
    return OneHotEncoder(**known).fit(labels[:1, np.newaxis])


def number_encoder(edges, missing):
    """Return a plain one-hot encoder of bins, and of what is missing if that is asked for."""
    if not missing:
        return binning([edges])
    scaler = clipping(edges[:1], edges[-1:])
    starts = scaler.transform(edges[:-1, np.newaxis])[:, 0]
    filled = SimpleImputer().fit([[MISSING]])
    return make_pipeline(scaler, filled, binning([np.append(starts, [FROM, MISSING])]))


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
    def of(cls, model, limits, kinds, missing, evaluate):
        """Return the sum that a model computes, by its values at a made row for each cell.

        Parameters
        ----------
        model : estimator
        limits : list of ndarray
            The edges of each column's bins, or its categories.
        kinds : list of str
            Of each column: "label" if it has categories.
        missing : bool
            Whether a missing value is in a cell of its own.
        evaluate : callable
            Of a model and rows.
        """
        names, parts, examples = getattr(model, "feature_names_in_", None), [], []
        for j, (own, kind) in enumerate(zip(limits, kinds, strict=True)):
            if kind == "label":
                part = label_encoder(own, missing)
                (labels,) = part.categories_
                values = ["?".join(map(str, ["", *labels])), *labels]
            else:
                part, middles = number_encoder(own, missing), own[:-1] + 0.5 * np.diff(own)
                values = [middles[0], *middles, *[np.nan] * missing]
            parts.append((f"cells{j}", holding(part, None if names is None else names[[j]]), [j]))
            examples.append(values)
        first = [values[0] for values in examples]
        rows = [first]
        for j, values in enumerate(examples):
            rows += [[*first[:j], value, *first[j + 1 :]] for value in values[1:]]
        rows = np.array(rows, dtype=object)
        made = evaluate(nameless(model), rows)
        made = (made.toarray() if hasattr(made, "toarray") else np.asarray(made)).reshape(
            len(rows), -1
        )
        frozen = [(name, FrozenEstimator(part), place) for name, part, place in parts]
        encoder = ColumnTransformer(frozen, sparse_threshold=0.0, verbose_feature_names_out=False)
        encoder = holding(encoder.fit(rows[:1]), names, transformers=parts, transformers_=parts)
        return cls(encoder=encoder, coef_=(made[1:] - made[0]).T, intercept_=made[0])

    def transformer(self):
        """Return a plain transformer that computes it."""
        if np.array_equal(self.coef_, np.eye(self.coef_.shape[1])) and not self.intercept_.any():
            return self.encoder
        shift = holding(StandardScaler(with_std=False), mean_=-self.intercept_, scale_=None)
        return make_pipeline(self.encoder, matrix(self.coef_), shift)
