"""Explanations of scores: the contribution of each term in a model to the score of each row."""

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from skdp.utils._documents import align_columns, html_fragment, html_table, html_text

# Number of rows, and of terms per row, that a printed explanation shows.
MAX_ROWS = 5
MAX_TERMS = 8


class Explanation(NDArrayOperatorsMixin):
    """Contributions of a model's terms to the score of each sample.

    NumPy treats it as the array of contributions: indexing, iteration, arithmetic, `shape` and
    methods such as `sum` are those of ``np.asarray(explanation)``.

    Parameters
    ----------
    contributions : ndarray of shape (n_samples, n_terms) or (n_samples, n_terms, n_classes)
        Contributions.
    names : list of str
        Names of the terms.
    outputs : list of str
        The classes whose scores are explained; "the target" for a regressor.
    intercept : float or ndarray of shape (n_classes,)
        Constant that completes the sum of the contributions to the score.
    container : {"default", "pandas", "polars"}, default="default"
        Container of `values`, as selected by the model's `set_output`.
    index : pandas Index, default=None
        Labels of the samples.

    Attributes
    ----------
    values : ndarray or DataFrame
        Contributions in the selected container. With several classes, a frame has one column for
        each term and class.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveClassifier
    >>> X = np.arange(2000)[:, None] % [100, 50]
    >>> model = DPAdditiveClassifier(bounds=(0, 100)).fit(X, X[:, 0] > 50)
    >>> explanation = model.explain(X[:3])
    >>> explanation.names, explanation.shape, np.asarray(explanation).shape
    (['x0', 'x1'], (3, 2), (3, 2))
    >>> np.allclose(explanation.sum(axis=1) + model.intercept_, model.decision_function(X[:3]))
    True
    """

    def __init__(
        self,
        contributions: np.ndarray,
        names: list[str],
        *,
        outputs: list[str],
        intercept: float | np.ndarray,
        container: str = "default",
        index: object = None,
    ):
        self._contributions = contributions
        self.names = names
        self.outputs = outputs
        self.intercept = intercept
        self.container = container
        self._index = index

    @property
    def values(self):
        """Contributions in the container selected by the model's `set_output`."""
        if self.container == "pandas":
            return self.to_pandas()
        if self.container == "polars":
            import polars

            return polars.DataFrame(self._flat(), schema=self._column_names())
        return self._contributions

    def to_pandas(self):
        """Return the contributions as a pandas DataFrame with one column per term.

        Returns
        -------
        pandas.DataFrame
            With several classes, there is one column for each term and class, named "term: class".
            The index is that of the samples.
        """
        import pandas

        return pandas.DataFrame(self._flat(), columns=self._column_names(), index=self._index)

    def _flat(self):
        return self._contributions.reshape(len(self), -1)

    def _column_names(self):
        """Return the names of the contributions: of terms, and with several outputs of both."""
        if self._contributions.ndim == 2:
            return list(self.names)
        return [f"{name}: {output}" for name in self.names for output in self.outputs]

    def __array__(self, dtype=None, copy=None):
        if copy:
            return np.array(self._contributions, dtype=dtype)
        return np.asarray(self._contributions, dtype=dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        arrays = []
        for operand in inputs:
            if isinstance(operand, Explanation):
                operand = np.asarray(operand)
            arrays.append(operand)
        return getattr(ufunc, method)(*arrays, **kwargs)

    def __getattr__(self, name):
        # This covers `shape`, `sum`, `T` and all other attributes of an array. Private names are
        # excluded, because copying and unpickling look them up before `_contributions` exists.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._contributions, name)

    def __getitem__(self, key):
        return self._contributions[key]

    def __len__(self):
        return len(self._contributions)

    def __iter__(self):
        return iter(self._contributions)

    def _rows(self):
        """Return a header and rows of texts: the largest contributions to the first rows."""
        n_terms = min(MAX_TERMS, len(self.names))
        rows = []
        index = self._index
        if index is None:
            index = range(len(self))
        flat = self._contributions.reshape(*self.shape[:2], -1)
        starts = np.ravel(self.intercept)
        for label, contributions in zip(index, flat[:MAX_ROWS], strict=False):
            scores = contributions.sum(axis=0) + starts
            # With several classes, the one with the largest score is explained.
            output = int(np.argmax(scores))
            order = np.argsort(-np.abs(contributions[:, output]), kind="stable")[:n_terms]
            terms = ", ".join(f"{self.names[t]} {contributions[t, output]:+.2g}" for t in order)
            row = [str(label), terms, f"{scores[output]:+.3g}"]
            if len(self.outputs) > 1:
                row.insert(1, str(self.outputs[output]))
            rows.append(row)
        head = ["row", "largest contributions", "score"]
        if len(self.outputs) > 1:
            head.insert(1, "class")
        return head, rows

    def _title(self):
        """Return the title of the printed table."""
        title = f"What {len(self.names)} terms add to the scores of {len(self)} rows"
        if len(self) > MAX_ROWS:
            title += f", the first {MAX_ROWS} shown"
        return title

    def __repr__(self):
        head, rows = self._rows()
        return "\n".join([self._title(), *align_columns([head, *rows])])

    def _repr_html_(self):
        """Return the table as HTML, for notebooks."""
        head, rows = self._rows()
        title = html_text(self._title())
        return html_fragment(f"<p>{title}</p>", html_table(rows, head=head))
