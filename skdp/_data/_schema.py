"""A draft of what a table's form declares, by its columns' names and types alone."""

from skdp._data._kinds import container_kinds
from skdp.utils._frames import is_frame, names_of


def schema_from(frame):
    """Draft what has to be declared of a table, with blanks to fill in.

    No value is read, nor the labels that a type of categories lists: fill the blanks in from the
    form, the law or common sense. The draft is plain data, which ``json.dump`` writes for whoever
    signs it and ``json.load`` reads.

    Parameters
    ----------
    frame : DataFrame
        Of pandas, polars, pyarrow or dask, without the target. Columns have names.

    Returns
    -------
    dict
        With the parameters that estimators take, as in ``DPAdditiveClassifier(**schema)``:

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
    >>> schema_from(table)
    {'bounds': {'age': None}, 'categories': {'job': None}}
    """
    names = names_of(frame) if is_frame(frame) else []
    if not all(isinstance(name, str) for name in names) or not 0 < len(names) == len(set(names)):
        raise ValueError(
            "a schema is drafted of a data frame whose columns have names of their own"
        )
    kinds = dict(zip(names, container_kinds(frame, None), strict=True))
    return {
        "bounds": {n: None for n in names if kinds[n] in ("number", "date", "duration")},
        "categories": {n: None for n in names if kinds[n] in ("label", "object")},
    }
