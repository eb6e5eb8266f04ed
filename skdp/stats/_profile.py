"""The result of a private description of a table, as a document, dict, frames or a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from skdp._data._schema import Schema
from skdp._privacy_statement import PrivacyStatement
from skdp.stats._describe_plan import ROWS_OF_PERSON_EDGES, ReleasedDescription
from skdp.stats._profile_columns import (
    Association,
    CategoricalProfile,
    NumericProfile,
    critical_value,
    profile_column,
)
from skdp.stats._profile_document import profile_html, profile_section
from skdp.utils._documents import PrintedDocument, Section, html_fragment
from skdp.utils._validation import check_choice

if TYPE_CHECKING:
    import pandas as pd

    from skdp.stats._profile_display import ProfileDisplay

TABLES = ("columns", "cells", "associations")
# A bin in the histogram of rows per person is used if it is this many standard deviations above 0.
# Otherwise, noise in bins with many rows per person would dominate the estimated number of rows.
MIN_BIN_OF_PERSONS_STDS = 4.5


class TableProfile(PrintedDocument):
    """Released description of a table, from `dp_describe`.

    ``print(profile)`` shows it as text, a notebook shows HTML, and ``profile.plot()`` draws it.
    None of this costs anything, because the profile contains only released values.

    Parameters
    ----------
    names : list
        Names of the columns, or their positions.
    released : ReleasedDescription
        All released values.
    n_units : int
        Public number of rows, or of persons.
    privacy : PrivacyStatement
        The statement of the one charge.

    Attributes
    ----------
    columns : dict of name to NumericProfile or CategoricalProfile
        The profile of each column: missing values, mean, quantiles and histogram, or the
        frequencies of categories, with standard errors.
    associations : list of Association
        One for each pair of columns; empty if noise would hide them.
    n_rows : float
        Number of rows: the public one, or an estimate if the privacy unit is a person. NaN if noise
        hides how many rows the persons have.
    n_rows_interval : tuple of (low, high)
        Interval of the estimate; the number of rows of a person is known only up to a factor of
        1.5.
    n_units : int
        Public number of rows, or of persons.
    unit : {"row", "person"}
        The unit that is counted.
    schema : Schema
        Bounds and categories of all columns, declared or found, for fitting models. The entry of a
        column without found categories is blank.
    privacy : PrivacyStatement

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.stats import dp_describe
    >>> age = np.random.default_rng(0).integers(17, 90, size=10_000)
    >>> frame = pd.DataFrame({"age": age, "retired": age > 65})
    >>> profile = dp_describe(frame, epsilon=1.0, bounds={"age": (17, 90)})
    >>> profile["age"].kind, profile.schema["bounds"]
    ('number', {'age': (17, 90)})
    """

    columns: dict[object, NumericProfile | CategoricalProfile]

    def __init__(
        self, names: list, released: ReleasedDescription, n_units: int, privacy: PrivacyStatement
    ):
        self.n_units = n_units
        self.unit = "row" if released.rows_of_persons is None else "person"
        self.privacy = privacy
        self.columns = {}
        for name, column in zip(names, released.columns, strict=True):
            self.columns[name] = profile_column(
                name, column, n_units, is_gaussian=released.is_gaussian
            )
        self.associations = _associations(names, released)
        self.n_rows, self.n_rows_interval = _number_of_rows(released, n_units)

    def __getitem__(self, name):
        return self.columns[name]

    def __repr__(self):
        return str(self)

    @property
    def schema(self) -> Schema:
        """Bounds and categories of the columns, ready to be passed to fits of models."""
        bounds: dict[object, tuple] = {}
        categories: dict[object, list | None] = {}
        for name, column in self.columns.items():
            if isinstance(column, NumericProfile):
                bounds[name] = column.bounds
            elif not all(isinstance(label, bool) for label in column.categories):
                categories[name] = column.categories
            elif not column.categories:
                categories[name] = None
        return Schema(bounds=bounds, categories=categories)

    def section(self) -> Section:
        """Return the profile as a section of a printed document.

        Returns
        -------
        Section
        """
        return profile_section(self)

    def _repr_html_(self):
        return html_fragment(profile_html(self))

    def to_dict(self) -> dict:
        """Return the profile as JSON values.

        Returns
        -------
        dict
        """
        return {
            "n_rows": _json(self.n_rows),
            "n_units": self.n_units,
            "unit": self.unit,
            "columns": {str(name): _json(vars(c)) for name, c in self.columns.items()},
            "associations": [_json(vars(association)) for association in self.associations],
            "schema": _json(dict(self.schema)),
            "privacy": self.privacy.to_dict(),
        }

    def to_pandas(
        self, table: Literal["columns", "cells", "associations"] = "columns"
    ) -> pd.DataFrame:
        """Return a table of the profile as a pandas DataFrame.

        Parameters
        ----------
        table : {"columns", "cells", "associations"}, default="columns"
            "columns" has one row per column, "cells" one per bin of a histogram and per category,
            with its count, standard error and band, and "associations" one per pair of columns.

        Returns
        -------
        DataFrame
        """
        import pandas as pd

        check_choice(table, "table", TABLES)
        if table == "columns":
            rows = [_summary(column) for column in self.columns.values()]
            return pd.DataFrame(
                rows, index=pd.Index(list(self.columns), name="column", tupleize_cols=False)
            )
        if table == "cells":
            return pd.DataFrame([row for c in self.columns.values() for row in _cell_rows(c)])
        return pd.DataFrame(
            [
                {
                    "first": a.columns[0],
                    "second": a.columns[1],
                    "association": a.value,
                    "std": a.std,
                    "chance": a.chance,
                }
                for a in self.associations
            ],
            columns=["first", "second", "association", "std", "chance"],
        )

    def plot(self, columns: list | None = None) -> ProfileDisplay:
        """Draw the histograms with their noise, and the associations.

        Parameters
        ----------
        columns : list of names, default=None
            Columns to draw; None draws the first 24.

        Returns
        -------
        skdp.display.ProfileDisplay
        """
        from skdp.stats._profile_display import ProfileDisplay

        return ProfileDisplay(self, columns=columns).plot()


def _associations(names, released):
    """Return one `Association` per pair of columns."""
    scores = released.pair_scores
    if scores is None:
        return []
    margin = critical_value(len(scores.pairs), is_gaussian=released.is_gaussian)
    with np.errstate(invalid="ignore"):
        is_visible = scores.associations > scores.chances + margin * scores.stds
    return [
        Association(
            columns=(names[j], names[k]),
            value=float(scores.associations[i]),
            std=float(scores.stds[i]),
            chance=float(scores.chances[i]),
            is_visible=bool(is_visible[i]),
        )
        for i, (j, k) in enumerate(scores.pairs)
    ]


def _number_of_rows(released, n_units):
    """Return the number of rows, and its interval; NaN if noise hides the rows of all persons."""
    if released.rows_of_persons is None:
        return n_units, (n_units, n_units)
    counts = released.rows_of_persons
    counts = np.where(counts >= MIN_BIN_OF_PERSONS_STDS * released.noise_std, counts, 0.0)
    if not counts.any():
        # Each person has at least one row.
        return np.nan, (float(n_units), np.inf)
    counts *= n_units / counts.sum()
    low = ROWS_OF_PERSON_EDGES
    high = np.append(low[1:] - 1, low[-1])
    noise = 2.0 * released.noise_std * np.sqrt((low[counts > 0.0] ** 2.0).sum())
    least = float(counts.dot(low))
    largest = float(counts.dot(high))
    estimate = 0.5 * (least + largest)
    return estimate, (max(least - noise, float(n_units)), largest + noise)


def _summary(column):
    """Return the row of a column in the table of columns."""
    row = {"kind": column.kind, "missing": column.missing, "missing_std": column.missing_std}
    if column.kind == "label":
        row["kind"] = "category"
        top = None
        frequency = np.nan
        if column.categories:
            top = column.categories[0]
            frequency = float(column.frequencies[0])
        return row | {"categories": len(column.categories), "top": top, "top_frequency": frequency}
    row |= {"mean": column.mean, "mean_std": column.mean_std, "std": column.std}
    row["low"], row["high"] = column.bounds
    for fraction, value in column.quantiles.items():
        row[f"{100 * fraction:.0f}%"] = value
    return row


def _cell_rows(column):
    """Return one row per cell of a column."""
    if column.kind == "label":
        cells = [str(category) for category in column.categories]
        stds = np.full(len(cells), column.count_std)
        counts, band = column.counts, column.band
    else:
        histogram = column.histogram
        edges = histogram.edges
        cells = [f"{low} to {high}" for low, high in zip(edges[:-1], edges[1:], strict=True)]
        counts, stds, band = histogram.counts, histogram.stds, histogram.band
    return [
        {
            "column": column.name,
            "cell": cell,
            "count": float(counts[i]),
            "std": float(stds[i]),
            "band_low": float(band[0][i]),
            "band_high": float(band[1][i]),
        }
        for i, cell in enumerate(cells)
    ]


def _json(value):
    """Return released values as values of JSON, which has neither arrays nor infinite numbers."""
    if isinstance(value, dict):
        return {str(key): _json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_json(item) for item in value]
    if isinstance(value, np.ndarray):
        return [_json(item) for item in value]
    if hasattr(value, "histogram") or hasattr(value, "edges"):
        return _json(vars(value))
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    # Labels of columns may be of any type, such as dates or bytes.
    return str(value)
