"""Base classes of transformers that release statistics of columns, and their plans."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin, TransformerMixin

from skdp._data._clipping import finite_doubles
from skdp._data._output import frame_library
from skdp._data._tables import read_samples
from skdp.base import TableEstimator, TableShape, private_answer, row_wise_answer
from skdp.mechanisms._unknown_shape import names_in
from skdp.preprocessing._binning import input_names


class PlannedTransformer(TransformerMixin, TableEstimator):
    """Base of transformers that are fitted by a plan.

    A pipeline finds redundant charges by three attributes, which are False unless a class sets
    them. `_rescales`: features are shifted or scaled. `_undoes_scaling`: shifting or scaling the
    features beforehand does not change the output. `_known_range`: the range of the output is
    known. The pipeline plans the charge for a table of unknown shape with
    `_shape_dependent_if_auto` (see `PrivateEstimator`).
    """

    _public: ClassVar[tuple[str, ...]] = ("bounds",)

    def get_feature_names_out(self, input_features=None):
        """Return the names of the output's columns.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the input's columns. None uses the names of the fitted table, or x0, x1, ...

        Returns
        -------
        ndarray of str
            The name of the input column, if it has one output column. Otherwise its name, an
            underscore, and the index of a bin, a category or a class. Columns of pairs follow, if
            present; their names are the names of both cells separated by a space. Indicators of
            missing values come last; their names are ``missingindicator_`` and the column's name.
            Underscores follow a name that another column of the output already has: the category
            ``"b_c"`` of a column ``"a"`` and the category ``"c"`` of a column ``"a_b"`` would
            otherwise have the same name.
        """
        names = self._names_made(input_names(self, input_features), self._parts_of_columns())
        return np.array(distinct_names(names), dtype=object)

    def _parts_of_columns(self):
        """Return the names of each column's outputs, or None if every column has one output."""

    def _names_made(self, names, parts, form=None):
        """Return the names of the output's columns.

        Parameters
        ----------
        names : sequence of str
            Names of the input's columns.
        parts : list of sequence, or None
            Output of `_parts_of_columns`.
        form : TableForm, default=None
            Form of the input, if the transformer is not fitted yet.
        """
        if parts is None:
            return [*names]
        output_names = []
        for name, column_parts in zip(names, parts, strict=True):
            output_names.extend(f"{name}_{part}" for part in column_parts)
        return output_names

    def _output_form(self, form):
        """Return the form of the output of `transform`, from the form of the input.

        A pipeline uses it to check the following steps before the first charge. Properties that
        depend on a release are None. Properties determined by the parameters and the form of
        the input must be set, because the following steps are checked only against them.

        Parameters
        ----------
        form : TableForm

        Returns
        -------
        TableForm

        Raises
        ------
        ValueError
            If a parameter is invalid.
        """
        has_names = form.has_names is not None
        if not has_names and form.n_columns is not None:
            # Column names in parameters are assumed to exist.
            form = replace(form, names=names_in(self.get_params(deep=False), form.n_columns))
        output_names = self._planned_names(form)
        n_columns = None
        if output_names is not None:
            n_columns = len(output_names)
        keyed = _named_by_labels(form)
        library = frame_library(self)
        is_named = has_names or isinstance(self, ClassNamePrefixFeaturesOutMixin)
        if not (library and is_named):
            output_names = None
        output = form.with_columns(
            n_columns, names=output_names, examples=self._planned_examples(keyed)
        )
        return replace(
            output,
            kinds=self._planned_kinds(keyed, n_columns),
            holds_numbers=self._makes_numbers(keyed),
            library=library,
            has_names=None,
            is_sparse=self._makes_sparse,
        )

    # True if `transform` returns a sparse matrix.
    _makes_sparse = False

    def _planned_names(self, form):
        """Return the names of the output's columns before a fit, or None if unknown.

        Unknown names of the input are replaced by x0, x1, ...
        """
        if form.n_columns is None:
            return None
        keyed = _named_by_labels(form)
        parts = self._planned_parts(keyed)
        if parts is not None and any(column_parts is None for column_parts in parts):
            return None
        return distinct_names(self._names_made(planned_input_names(form), parts, keyed))

    def _planned_parts(self, form):
        """Return `_parts_of_columns` before a fit, with None where outputs depend on the fit."""
        return None

    def _makes_numbers(self, form):
        """Return True if all columns of the output are known to be numeric."""
        return True

    def _planned_kinds(self, form, n_columns):
        """Return the kinds of the output's columns, or None if all are numeric or unknown."""
        return None

    def _planned_examples(self, form):
        """Return the `examples` of a `TableForm` for the columns of the output."""
        return {}

    def _shape_of_size(self, n_rows, n_columns):
        """Return the shape of a table when only its size is known."""
        names = names_in(self.get_params(deep=False), n_columns)
        return TableShape(n_rows=n_rows, n_columns=n_columns, names=names)


class BoundedColumnsTransformer(OneToOneFeatureMixin, PlannedTransformer):
    """Base of transformers that release statistics of numeric columns within bounds."""

    _rescales = True

    def _clipped(self, X):
        """Return samples clipped to the bounds, which limits the effect of outliers."""
        return np.clip(read_samples(self, X), *self.bounds_)


class CenteringTransformer(BoundedColumnsTransformer):
    """Base of transformers that subtract `_middle` and divide by `_spread`.

    A subclass defines both, usually as properties. Each is an array with one number per column, or
    None to leave the operation out: where a parameter switches it off, or in every instance of a
    class that has no such operation.
    """

    @row_wise_answer
    def transform(self, X):
        """Center and scale each feature.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples. Values are clipped to the bounds; results that overflow become the largest
            double.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = self._clipped(X)
        if self._middle is not None:
            X = X - self._middle
        if self._spread is not None:
            X = finite_doubles(X / self._spread)
        return X

    @private_answer
    def inverse_transform(self, X):
        """Undo `transform`, except for clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Scaled samples.

        Returns
        -------
        ndarray of shape (n_samples, n_features), float64
        """
        X = read_samples(self, X)
        if self._spread is not None:
            X = X * self._spread
        if self._middle is not None:
            X = X + self._middle
        return X


def distinct_names(names):
    """Return names of columns, with underscores after names that occurred before.

    Frames of polars and later steps refuse columns with equal names, which would be after the
    charge where categories are found.

    Parameters
    ----------
    names : list of str or None
        None represents an unknown name.

    Returns
    -------
    list of str or None
    """
    if None in names or len(set(names)) == len(names):
        return names
    distinct = {}
    # A name is not changed to one that a later column has.
    all_names = set(names)
    for name in names:
        if name in distinct:
            while name in all_names:
                name += "_"
            all_names.add(name)
        distinct[name] = None
    return list(distinct)


def prefixed_names(estimator, n_columns):
    """Return the names that `ClassNamePrefixFeaturesOutMixin` gives to the output's columns."""
    prefix = type(estimator).__name__.lower()
    return [f"{prefix}{k}" for k in range(n_columns)]


def planned_input_names(form):
    """Return the input names of a transformer that is fitted to a table of this form."""
    if form.names is None:
        return [f"x{j}" for j in range(form.n_columns)]
    return [*form.names]


def _named_by_labels(form):
    """Return a form named by the columns' labels, even if they are not strings.

    These are the keys of dicts in parameters.
    """
    if form.labels is None:
        return form
    return replace(form, names=form.labels)
