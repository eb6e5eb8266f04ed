"""Report of a fitted synthesizer: the measured tables, and how closely rows reproduce them."""

from dataclasses import dataclass

from skdp.synthesis._report_picture import report_pictures
from skdp.utils._documents import PrintedDocument, Section, html_fragment, with_bar
from skdp.utils._values import FrozenValue

ADVICE = (
    "Rows are drawn from a released model: any number may be drawn, and none is a person. Standard "
    "errors that are computed from synthetic rows do not include the noise, and shrink with the "
    "number of drawn rows although no information is added: tests reject too often. Combinations "
    "of columns that were not measured are reproduced only as far as measured ones imply them, and "
    "rare combinations are not reliable. `marginal` returns released counts with standard errors."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class SynthesisReport(PrintedDocument, FrozenValue):
    """Measured tables of a synthesizer and their distance from the simulated rows.

    Nothing in it is computed from the data: it compares released values with each other.

    Parameters
    ----------
    rows : list of dict
        One dict per measured table: ``columns``, ``cells``, ``standard_error`` (of a count),
        ``distance`` (total variation distance between the released table and the simulated rows)
        and ``noise`` (the same distance between the released and the exact table, expected from
        the noise). Rows that reproduce the exact table have a distance of about ``noise``.
    summary : list of (str, str)
        Facts about the fit.
    columns : list of dict
        One dict per modeled column: ``name``, ``is_categorical``, ``groups`` (their names),
        ``released`` and ``standard_error`` (released fractions of the rows) and ``simulated``.
    pairs : list of dict
        One dict per scored pair: ``columns``, ``dependence`` (the released score, which is the
        noisy total variation distance from independent columns) and ``is_measured``.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdp.synthesis import DPTableSynthesizer
    >>> frame = pd.DataFrame({"sex": ["F", "M"] * 500, "smokes": [True, False] * 500})
    >>> synthesizer = DPTableSynthesizer(5.0, categories={"sex": ["F", "M"]}).fit(frame)
    >>> len(synthesizer.report().rows)
    1
    """

    rows: list
    summary: list
    columns: list
    pairs: list

    def to_pandas(self):
        """Return the rows as a pandas frame.

        Returns
        -------
        DataFrame
        """
        import pandas as pd

        return pd.DataFrame(self.rows)

    def section(self):
        """Return the report as a section of a document.

        Returns
        -------
        Section
        """
        head = ("table", "cells", "standard error", "distance", "of it noise")
        largest = max((row["distance"] for row in self.rows), default=1.0)
        lines = [head]
        for row in sorted(self.rows, key=_excess_distance, reverse=True):
            lines.append(
                (
                    " × ".join(map(str, row["columns"])),
                    str(row["cells"]),
                    f"{row['standard_error']:,.1f}",
                    with_bar(f"{row['distance']:.3f}", row["distance"], largest),
                    f"{row['noise']:.3f}",
                )
            )
        notes = (
            "The distance is the total variation distance between the released table and simulated "
            "rows. The last column is the distance between the released and the exact table that "
            "noise alone is expected to cause.",
            ADVICE,
        )
        tables = ()
        if self.rows:
            tables = (lines,)
        return Section("Synthetic table", tuple(self.summary), tables, notes)

    def _repr_html_(self):
        """Return the report as HTML with pictures, as notebooks display it."""
        section = self.section()
        return html_fragment(
            Section(section.heading, section.rows).to_html(),
            report_pictures(self.columns, self.pairs),
            Section("Measured tables", (), section.tables, section.notes).to_html(),
        )

    def __repr__(self):
        return f"SynthesisReport({len(self.rows)} measured tables)"


def _excess_distance(row):
    return row["distance"] - row["noise"]
