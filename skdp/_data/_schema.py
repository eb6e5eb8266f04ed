"""Schema of a table: its bounds and categories in a file, and a draft made from names and types."""

import json
from pathlib import Path
from typing import Any

from skdp._data._frames import check_names_differ, is_frame, names_of
from skdp._data._kinds import container_kinds
from skdp.utils._documents import Section, html_fragment
from skdp.utils._types import TableLike

HALVES = ("bounds", "categories")


class Schema(dict):
    """Declared bounds and categories of a table's columns: a dict of two dicts with names as keys.

    Estimators accept it as ``tabular_pipeline("classifier", **schema)``, or one half of it as
    ``DPStandardScaler(bounds=schema["bounds"])``. Its file is JSON with one line per column, which
    the curator of the data can read and sign.

    See Also
    --------
    schema_from : Draft of a table's schema.

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
            Path of the file.

        Returns
        -------
        Schema

        Raises
        ------
        ValueError
            If the file does not contain the two dicts.
        """
        content = json.loads(Path(path).read_text("utf-8"))
        if isinstance(content, dict):
            halves = [content.get(half) for half in HALVES]
        else:
            halves = [None]
        if not all(isinstance(declared, dict) for declared in halves):
            raise ValueError(f"{path} must contain an object with 'bounds' and 'categories'")
        return cls({half: content[half] for half in HALVES})

    def save(self, path):
        """Write the schema to a file, with ``null`` for blanks.

        Parameters
        ----------
        path : str or path-like
            Path of the file; an existing file is replaced.
        """
        Path(path).write_text(f"{self}\n", "utf-8")

    def __eq__(self, other):
        """Return True if both declare the same, in pairs and lists of any type.

        So a schema equals the one in its file, which has lists instead of tuples and arrays.
        """
        if not isinstance(other, Schema):
            return super().__eq__(other)
        return _json_values(self) == _json_values(other)

    def __ne__(self, other):
        return not self == other

    __hash__ = None

    @property
    def bounds(self):
        """The declared bounds, a dict from columns to (low, high) or None."""
        return self["bounds"]

    @property
    def categories(self):
        """The declared categories, a dict from columns to lists or None."""
        return self["categories"]

    def drop(self, columns):
        """Return the schema without some columns, such as the target.

        Parameters
        ----------
        columns : str or list of str
            Names of the columns. Names that are not in the schema, such as those of columns that
            need no declaration, are ignored.

        Returns
        -------
        Schema
        """
        if isinstance(columns, str):
            columns = [columns]
        else:
            columns = list(columns)
        halves = {}
        for half, declared in self.items():
            halves[half] = {name: value for name, value in declared.items() if name not in columns}
        return type(self)(halves)

    @property
    def blanks(self):
        """Names of the columns without a declaration, as a list."""
        return [name for declared in self.values() for name in declared if declared[name] is None]

    def _lines(self, half):
        """Return the name and the declaration, as JSON, of each column."""
        lines = []
        for name, declared in self[half].items():
            text = json.dumps(declared, default=_json_value, ensure_ascii=False)
            lines.append((str(name), text))
        return lines

    def __repr__(self):
        halves = []
        for half in self:
            lines = [
                f"  {json.dumps(name, ensure_ascii=False)}: {text}"
                for name, text in self._lines(half)
            ]
            halves.append(f' "{half}": {{\n' + ",\n".join(lines) + "\n }")
        return "{\n" + ",\n".join(halves) + "\n}"

    def _repr_html_(self):
        return html_fragment(*(Section(half, self._lines(half)).to_html() for half in self))


def _json_values(schema):
    """Return a schema's declarations as JSON values, as its file contains them."""
    return {
        half: {
            name: json.loads(json.dumps(value, default=_json_value))
            for name, value in declared.items()
        }
        for half, declared in schema.items()
    }


def _json_value(value):
    """Return a NumPy, pandas or datetime value as a JSON value."""
    if hasattr(value, "tolist") and value.dtype.kind not in "mM":
        return value.tolist()
    # A duration has no form in JSON; its text is for readers.
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def schema_from(frame: TableLike) -> Schema:
    """Draft the schema of a table, with blanks to fill in.

    No values are read, nor the labels that a categorical type lists. Fill in the blanks from the
    form that collected the data, from the law or from common sense, not from the data.

    Parameters
    ----------
    frame : DataFrame
        A frame of pandas, polars (also lazy), pyarrow or dask with column names, without the
        target.

    Returns
    -------
    Schema
        A dict with the parameters that estimators take, as in ``DPAdditiveClassifier(**schema)``:

        "bounds" : dict of str to None
            Columns of numbers, dates and durations. Replace None by a pair (low, high); dates may
            be strings such as "2015-01-31", "2015-01-31T12:00" or "2015".
        "categories" : dict of str to None
            Columns of strings, categories and objects. Replace None by a list of labels.

        Boolean columns need no declaration. Additive models and `DPTableVectorizer` find the
        bounds or categories of a remaining blank privately; other estimators refuse it.

    Raises
    ------
    ValueError
        If the columns have no names, or a name is not a string or occurs twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp import schema_from
    >>> table = pd.DataFrame({"age": [31, 64], "job": pd.array(["care", None], dtype="string")})
    >>> schema = schema_from(table)
    >>> schema["bounds"], schema["categories"]
    ({'age': None}, {'job': None})
    """
    if hasattr(type(frame), "collect_schema") and hasattr(type(frame), "collect"):
        # An empty polars frame has the same types as the lazy one, and nothing is computed.
        lazy: Any = frame
        frame = lazy.clear().collect()
    if not is_frame(frame):
        raise ValueError(
            "frame must be a data frame whose column names are distinct strings, got a "
            f"{type(frame).__name__}"
        )
    names = names_of(frame)
    if not names:
        raise ValueError("frame has no columns")
    if not all(isinstance(name, str) for name in names):
        raise ValueError(
            "frame must be a data frame whose column names are strings, like the keys of JSON: "
            "write X.columns = [str(name) for name in X.columns] in pandas"
        )
    check_names_differ(frame, "frame")
    kinds = dict(zip(names, container_kinds(frame), strict=True))
    return Schema(
        bounds={n: None for n in names if kinds[n] in ("number", "date", "duration")},
        categories={n: None for n in names if kinds[n] in ("label", "object")},
    )
