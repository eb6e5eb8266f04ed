"""What is known, before a fit, of the table that reaches a step: names, dtypes, container."""

from dataclasses import replace

from sklearn.base import BaseEstimator, OneToOneFeatureMixin
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from skdp._data._kinds import container_kinds
from skdp.pipeline._instances import gives_numbers, is_estimator, of_skdp
from skdp.pipeline._known import accepted_entry
from skdp.utils._chunked import form_of
from skdp.utils._frames import is_frame
from skdp.utils._output import asks_for_frame
from skdp.utils._values import FrozenValue


class TableForm(FrozenValue, kw_only=True):
    """Public properties of a table's columns. None stands for what is not known.

    Parameters
    ----------
    names : tuple of str or None, default=None
        The columns' names. None also where the columns have no names.
    kinds : tuple of str or None, default=None
        The kinds of the columns' dtypes, as in `TableShape`.
    is_frame : bool or None, default=None
        True if columns can be chosen by name.
    is_sparse : bool or None, default=None
        True for a sparse matrix.
    """

    names: tuple | None = None
    kinds: tuple | None = None
    is_frame: bool | None = None
    is_sparse: bool | None = None

    def take(self, indices):
        """Return the form of some of the columns; None stands for columns that are not known."""
        names, kinds = self.names, self.kinds
        if indices is None or any(isinstance(index, str) for index in indices):
            return replace(self, names=None, kinds=None)
        return replace(
            self,
            names=None if names is None else tuple(names[j] for j in indices),
            kinds=None if kinds is None else tuple(kinds[j] for j in indices),
        )


UNKNOWN_FORM = TableForm()


def form_of_table(X):
    """Return the form of a table: no value is read.

    Parameters
    ----------
    X : array, sparse matrix, ChunkedArray or DataFrame

    Returns
    -------
    TableForm
    """
    if len(getattr(X, "shape", ())) != 2:
        return UNKNOWN_FORM
    empty = form_of(X)
    reader = BaseEstimator()
    validate_data(reader, empty, skip_check_array=True)
    names = getattr(reader, "feature_names_in_", None)
    return TableForm(
        names=None if names is None else tuple(names.tolist()),
        kinds=tuple(container_kinds(X)),
        is_frame=is_frame(empty),
        is_sparse=hasattr(X, "tocsr"),
    )


def output_form(estimator, form, n_columns_out):
    """Return the form of the table that a step makes, from its class and its parameters.

    Parameters
    ----------
    estimator : estimator, "passthrough", "drop" or None
        A step, with nothing nested in it.
    form : TableForm
        That of the step's input.
    n_columns_out : int or None
        The number of columns that the step makes.

    Returns
    -------
    TableForm
    """
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return form
    if not is_estimator(estimator):
        return replace(form, names=(), kinds=(), is_sparse=False)
    found = accepted_entry(estimator)
    is_search = is_estimator(estimator.get_params(deep=False).get("estimator"))
    if is_search or not (of_skdp(estimator) or found is not None):
        return UNKNOWN_FORM
    if type(estimator) is FunctionTransformer:
        # Its function may return another container than it is given.
        return UNKNOWN_FORM
    makes_frame = asks_for_frame(estimator)
    keeps_names = makes_frame and isinstance(estimator, OneToOneFeatureMixin)
    numbers = of_skdp(estimator) and gives_numbers(estimator) and n_columns_out is not None
    return TableForm(
        names=form.names if keeps_names else None,
        kinds=("number",) * n_columns_out if numbers else None,
        is_frame=makes_frame,
        is_sparse=_makes_sparse(estimator, found, form),
    )


def _makes_sparse(estimator, found, form):
    params = estimator.get_params(deep=False)
    if of_skdp(estimator):
        one_hot = params.get("encode") == "onehot" and "sparse_output" not in params
        return estimator._always_sparse or one_hot or params.get("sparse_output") is True
    if isinstance(params.get("sparse_output"), bool):
        return params["sparse_output"]
    # A step that refuses sparse tables has none to keep.
    return {"kept": form.is_sparse, "made": True, "dense": False, "refused": False}[found.sparse]


def joined_form(container, parts, forms, sparse_threshold=None):
    """Return the form of the table that a `ColumnTransformer` or `FeatureUnion` makes.

    Parameters
    ----------
    container : estimator
    parts : list of str
        The names of its parts.
    forms : list of TableForm
        Those of the tables that the parts make.
    sparse_threshold : float, default=None
        A `ColumnTransformer`'s.

    Returns
    -------
    TableForm
    """
    makes_frame = asks_for_frame(container)
    sparse = [form.is_sparse for form in forms]
    if not any(is_sparse is not False for is_sparse in sparse):
        is_sparse = False
    elif sparse_threshold is None:
        is_sparse = True if True in sparse else None
    else:
        # Otherwise the density decides.
        is_sparse = False if sparse_threshold == 0 else None
    kinds = names = None
    if all(form.kinds is not None for form in forms):
        kinds = tuple(kind for form in forms for kind in form.kinds)
        if not makes_frame and set(kinds) - {"number"}:
            kinds = None
    if makes_frame and all(form.names is not None for form in forms):
        prefixed = container.verbose_feature_names_out
        if isinstance(prefixed, bool):
            pairs = zip(parts, forms, strict=True)
            names = tuple(
                f"{part}__{name}" if prefixed else name
                for part, form in pairs
                for name in form.names
            )
    return TableForm(names=names, kinds=kinds, is_frame=makes_frame, is_sparse=is_sparse)


def refuses_sparse(estimator):
    """Return True if a fit of a step is known to raise on a sparse matrix."""
    if not is_estimator(estimator):
        return False
    if of_skdp(estimator):
        return not get_tags(estimator).input_tags.sparse
    found = accepted_entry(estimator)
    return found is not None and found.sparse == "refused"
