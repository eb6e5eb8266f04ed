"""What a table's form declares, in a file; and a draft of it by names and types alone."""

import json
from pathlib import Path

from skdp._data._kinds import container_kinds
from skdp.utils._documents import Section, html_fragment
from skdp.utils._frames import is_frame, names_of

HALVES = ("bounds", "categories")


class Schema(dict):
    """What is public of a table's columns: a dict of `bounds` and of `categories`, by their names.

    Estimators take it as ``tabular_pipeline("classifier", **schema)``, or one half of it as
    ``DPStandardScaler(bounds=schema["bounds"])``. Its file is JSON with one line a column, for
    whoever owns the data to read and sign.

    See Also
    --------
    schema_from : Drafts one of a table.

    Examples
    --------
    >>> from skdp import Schema
    >>> schema = Schema(bounds={"age": (18, 100)}, categories={"job": None})
    >>> schema.blanks
    ['job']
    >>> schema
    {
     "bounds": {
      "age": [18, 100]
     },
     "categories": {
      "job": null
     }
    }
    """

    @classmethod
    def load(cls, path):
        """Return the schema in a file that `save` wrote.

        Parameters
        ----------
        path : str or path-like
            Of the file.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the file does not hold the two dicts.
        """
        read = json.loads(Path(path).read_text("utf-8"))
        halves = [read.get(what) for what in HALVES] if isinstance(read, dict) else [None]
        if not all(isinstance(each, dict) for each in halves):
            raise ValueError(f"{path} must hold an object with 'bounds' and 'categories'")
        return cls({what: read[what] for what in HALVES})

    def save(self, path):
        """Write it to a file, with ``null`` for blanks.

        Parameters
        ----------
        path : str or path-like
            Of the file; what it holds is replaced.
        """
        Path(path).write_text(f"{self}\n", "utf-8")

    @property
    def blanks(self):
        """The columns of which nothing is declared yet, a list of their names."""
        return [name for declared in self.values() for name in declared if declared[name] is None]

    def _lines(self, what):
        """Return a name, and what is declared of that column in JSON, for each column."""
        values = self[what].items()
        return [(str(n), json.dumps(v, default=_plain, ensure_ascii=False)) for n, v in values]

    def __repr__(self):
        parts = []
        for what in self:
            lines = [
                f"  {json.dumps(name, ensure_ascii=False)}: {v}" for name, v in self._lines(what)
            ]
            parts.append(f' "{what}": {{\n' + ",\n".join(lines) + "\n }")
        return "{\n" + ",\n".join(parts) + "\n}"

    def _repr_html_(self):
        return html_fragment(*(Section(what, self._lines(what)).to_html() for what in self))


def _plain(value):
    """Return what numpy, pandas or datetime made as JSON knows it."""
    return value.tolist() if hasattr(value, "tolist") else value.isoformat()


def schema_from(frame):
    """Draft what has to be declared of a table, with blanks to fill in.

    No value is read, nor the labels that a type of categories lists: fill the blanks in from the
    form, the law or common sense.

    Parameters
    ----------
    frame : DataFrame
        Of pandas, polars, pyarrow or dask, without the target. Columns have names.

    Returns
    -------
    Schema
        A dict with the parameters that estimators take, as in ``DPAdditiveClassifier(**schema)``:

        "bounds" : dict of str to None
            Columns of numbers, dates and durations. A pair (low, high) takes the place of None;
            of dates as text, "2015-01-31".
        "categories" : dict of str to None
            Columns of strings, categories and objects. A list of labels takes the place of None.

        Columns of booleans need no declaration. A blank that stays is found privately by
        additive models and `DPTableVectorizer`; other estimators refuse it.

    Raises
    ------
    ValueError
        If there are no names of columns, or one that is no string or occurs twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import schema_from
    >>> table = pd.DataFrame({"age": [31, 64], "job": pd.array(["care", None], dtype="string")})
    >>> schema = schema_from(table)
    >>> schema["bounds"], schema["categories"]
    ({'age': None}, {'job': None})
    """
    names = names_of(frame) if is_frame(frame) else []
    if not all(isinstance(name, str) for name in names) or not 0 < len(names) == len(set(names)):
        raise ValueError(
            "a schema is drafted of a data frame whose columns have names of their own, which are "
            "strings, as keys of JSON are: X.columns = X.columns.astype(str) in pandas"
        )
    kinds = dict(zip(names, container_kinds(frame), strict=True))
    return Schema(
        bounds={n: None for n in names if kinds[n] in ("number", "date", "duration")},
        categories={n: None for n in names if kinds[n] in ("label", "object")},
    )
