"""Text and HTML of the description of a table."""

import math

import numpy as np

from skdp.utils._documents import Section, count_of, html_text

# Number of frequent categories and of pairs of columns that are listed.
MAX_LISTED_CATEGORIES = 4
MAX_LISTED_PAIRS = 12
# Number of categories in a small picture, its size in pixels, and that of its bars.
MAX_BARS = 12
PICTURE_SIZE = (168, 64)
# A quantile, mean or frequency counts as unknown if half its interval exceeds this fraction of
# the range of the column.
MAX_UNKNOWN = 0.25
# Dates are written without a time if their range is at least this number of days.
MIN_DAYS = 10
DAY = np.timedelta64(1, "D")
QUANTILE_NAMES = {0.05: "5 %", 0.25: "25 %", 0.5: "50 %", 0.75: "75 %", 0.95: "95 %"}


def profile_section(profile):
    """Return the section of a `TableProfile`: its tables, and remarks on the noise."""
    n_rows = f"{profile.n_rows:,.0f}"
    if profile.unit == "person" and math.isnan(profile.n_rows):
        rows_text = (
            f"unknown, because noise hides how many rows the {profile.n_units:,} persons have; "
            "each person counts as one row"
        )
    elif profile.unit == "person":
        low, high = profile.n_rows_interval
        rows_text = (
            f"about {n_rows} (between {low:,.0f} and {high:,.0f}) of {profile.n_units:,} persons, "
            "each of whom counts as one row"
        )
    else:
        rows_text = f"{n_rows}, which is public"
    tables = []
    numeric = [c for c in profile.columns.values() if c.kind != "label"]
    categorical = [c for c in profile.columns.values() if c.kind == "label"]
    if numeric:
        tables.append(_numeric_table(numeric))
    if categorical:
        tables.append(_categorical_table(categorical))
    if profile.associations:
        tables.append(_association_table(profile))
    heading = f"Private description of a table with {count_of(len(profile.columns), 'column')}"
    rows = (("guarantee", profile.privacy.section().heading), ("rows", rows_text))
    return Section(heading, rows, tuple(tables), tuple(_notes(profile)))


def profile_html(profile):
    """Return the HTML of a `TableProfile`: its heading, pictures of columns, and its tables."""
    # The printed section is taken apart, because the pictures are between its heading and tables.
    section = profile.section()
    figures = "".join(_small_picture(column) for column in profile.columns.values())
    return (
        Section(section.heading, section.rows).to_html()
        + f'<div style="display:flex;flex-wrap:wrap;gap:12px;margin:12px 0">{figures}</div>'
        + "<p>Lines are simultaneous 95 % bands of the noise.</p>"
        + Section("Columns", (), section.tables, section.notes).to_html()
    )


def _numeric_table(columns):
    """Return the table of numeric columns; the first row is the header."""
    rows = [("column", "missing (%)", "mean", "std", *QUANTILE_NAMES.values(), "bounds")]
    for column in columns:
        quantiles = [
            _quantile(column, column.quantiles[fraction], column.quantile_intervals[fraction])
            for fraction in QUANTILE_NAMES
        ]
        error = _size(column.mean_std)
        bounds = " to ".join(_exact(end, column) for end in column.bounds)
        if not column.is_declared:
            bounds += " (found)"
        rows.append(
            (
                str(column.name),
                _percent_with_error(column.missing, column.missing_std),
                f"{_rounded(column.mean, error, column)} ± {_error_text(error, column)}",
                _length(column.std, column),
                *quantiles,
                bounds,
            )
        )
    return _right_aligned(rows, last_left=len(rows[0]) - 1)


def _categorical_table(columns):
    """Return the table of categorical columns; the first row is the header."""
    rows = [("column", "missing (%)", "other (%)", "categories", "most frequent")]
    for column in columns:
        n_units = max(column.count_std / max(column.missing_std, 1e-300), 1.0)
        error = column.count_std / n_units
        frequent = []
        listed = zip(column.categories, column.frequencies, strict=True)
        for category, frequency in list(listed)[:MAX_LISTED_CATEGORIES]:
            if frequency > 2.0 * error:
                frequent.append(f"{category} {_percent(frequency, error)} %")
        error_text = ""
        more = ""
        if frequent:
            error_text = f" (± {100.0 * error:.1g} %)"
            if len(column.categories) > len(frequent):
                more = ", ..."
        origin = ""
        if not column.is_declared:
            origin = " found"
        rows.append(
            (
                str(column.name),
                _percent_with_error(column.missing, error),
                _percent_with_error(column.other, error),
                f"{len(column.categories)}{origin}",
                ", ".join(frequent) + more + error_text,
            )
        )
    return _right_aligned(rows, last_left=len(rows[0]) - 1)


def _association_table(profile):
    """Return the table of the strongest associations; the first row is the header."""
    rows = [("columns", "association", "if independent")]
    visible = [a for a in profile.associations if a.is_visible]
    visible.sort(key=lambda a: -a.value)
    for association in visible[:MAX_LISTED_PAIRS]:
        rows.append(
            (
                " and ".join(map(str, association.columns)),
                f"{association.value:.2f} ± {association.std:.2f}",
                f"{association.chance:.2f}",
            )
        )
    if not visible:
        rows.append(("none is visible above the noise", "", ""))
    return _right_aligned(rows)


def _notes(profile):
    """Yield remarks on how to read the tables."""
    yield (
        "± is one standard error, owing to the noise and to the width of the cells. "
        "Values beyond the bounds count as the bounds. "
        "Quantiles are rounded to the precision that the noise permits; to_pandas('cells') has "
        "the counts of all bins and categories with their bands."
    )
    if profile.associations:
        n_visible = sum(a.is_visible for a in profile.associations)
        yield (
            "Association: 0 for independent columns, 1 if one determines the other. "
            f"Visible above chance and noise: {n_visible} of "
            f"{count_of(len(profile.associations), 'pair')}."
        )
    else:
        yield "Associations of columns were not released: they were left out, or noise hides them."
    blank = [
        str(c.name) for c in profile.columns.values() if c.kind == "label" and not c.categories
    ]
    if blank:
        names = ", ".join(blank)
        yield f"No category of {names} is visible: their values are rare, or all different."
    hidden = [str(c.name) for c in profile.columns.values() if _is_hidden(c)]
    if hidden:
        yield f"The noise hides most of {', '.join(hidden)}: use a larger epsilon or more rows."


def _is_hidden(column):
    """Return True if the noise hides the median of a numeric column."""
    if column.kind == "label":
        return False
    low, high = column.quantile_intervals[0.5]
    range_size = _size(column.bounds[1] - column.bounds[0])
    return _size(high - low) > 2.0 * MAX_UNKNOWN * range_size


def _right_aligned(rows, last_left=None):
    """Return rows whose cells are padded on the left, except in the first and the last column."""
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    aligned = []
    for row in rows:
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            if i not in (0, last_left):
                cell = cell.rjust(width)
            cells.append(cell)
        aligned.append(tuple(cells))
    return tuple(aligned)


def _size(value):
    """Return a difference of values as a number; durations in days."""
    if isinstance(value, np.timedelta64):
        return float(value / DAY)
    return float(value)


def _decimals(error):
    """Return the number of decimals at which rounding changes a value by less than an error."""
    if not error > 0.0:
        return 6
    return int(np.clip(-math.floor(math.log10(error)), -300, 6))


def _rounded_error(error):
    """Return the text of an error, with one or two significant digits."""
    if not error > 0.0:
        return "0"
    text = f"{error:.2g}"
    if "e+" in text or error >= 10.0:
        return f"{float(text):,.0f}"
    return text


def _plain_number(value, decimals):
    """Return the text of a number with some decimals; negative ones round to tens and hundreds."""
    # The sum removes the sign of a negative zero.
    value = round(float(value), decimals) + 0.0
    if abs(value) >= 1e12 or (value != 0.0 and abs(value) < 1e-4):
        return f"{value:.3g}"
    separator = ""
    if abs(value) >= 1e4:
        separator = ","
    text = f"{value:{separator}.{max(decimals, 0)}f}"
    if "." in text:
        return text.rstrip("0").rstrip(".")
    return text


def _rounded(value, error, column):
    """Return the text of a column's value, rounded to the precision that an error permits.

    Dates ignore the error: how much of a date is shown depends on the range of the column.
    """
    if column.kind == "date":
        return _date(value, column)
    if column.kind == "duration":
        return f"{_plain_number(_size(value), _decimals(error))} d"
    return _plain_number(value, _decimals(error))


def _quantile(column, value, interval):
    """Return the text of a quantile, rounded to the width of its interval."""
    return _rounded(value, _size(interval[1] - interval[0]) or 1e-3, column)


def _error_text(error, column):
    """Return the text of a standard error, in days for dates and durations."""
    if column.kind == "number":
        return _rounded_error(error)
    return f"{_rounded_error(error)} d"


def _length(value, column):
    """Return the text of a standard deviation, with three significant digits."""
    number = _size(value)
    text = "0"
    if number > 0.0:
        text = _plain_number(number, 2 - math.floor(math.log10(number)))
    if column.kind == "number":
        return text
    return f"{text} d"


def _exact(value, column):
    """Return the text of a bound, with six significant digits; integers and dates are exact."""
    if column.kind == "date":
        return _date(value, column)
    if column.kind == "duration":
        return f"{_size(value):,.6g} d"
    if isinstance(value, int) and 10**4 <= abs(value) < 10**12:
        return f"{value:,}"
    return f"{value:.6g}"


def _date(value, column):
    """Return the text of a date, with its time if the range of the column is short."""
    unit = "m"
    if _size(column.bounds[1] - column.bounds[0]) >= MIN_DAYS:
        unit = "D"
    return str(value.astype(f"M8[{unit}]"))


def _percent(fraction, error):
    """Return a fraction in percent, rounded to its error."""
    decimals = 1
    if error > 0.0:
        decimals = min(max(_decimals(100.0 * error), 0), 3)
    return f"{100.0 * fraction:.{decimals}f}"


def _percent_with_error(fraction, error):
    """Return a fraction and its standard error in percent."""
    return f"{_percent(fraction, error)} ± {100.0 * error:.1g}"


def _small_picture(column):
    """Return a small picture of a column as SVG, with the band of each bar."""
    if column.kind == "label":
        counts, band = column.counts[:MAX_BARS], column.band[:, :MAX_BARS]
    else:
        counts, band = column.histogram.counts, column.histogram.band
    width, height = PICTURE_SIZE
    n_bars = max(len(counts), 1)
    largest = float(max(band.max(initial=0.0), 1.0))
    step = width / max(n_bars, 4)
    bars = []
    for i, count in enumerate(counts):
        top = height * (1.0 - count / largest)
        low, high = (height * (1.0 - end / largest) for end in band[:, i])
        middle = (i + 0.5) * step
        bars.append(
            f'<rect x="{i * step + 0.5:.1f}" y="{top:.1f}" width="{max(step - 1.0, 0.5):.1f}" '
            f'height="{height - top:.1f}" fill="#5b8fc7"/>'
            f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{high:.1f}" y2="{low:.1f}" '
            'stroke="currentColor" stroke-width="1"/>'
        )
    ends = ""
    if column.kind != "label":
        ends = " to ".join(_exact(end, column) for end in column.bounds)
    elif column.categories:
        if len(counts) > 1:
            ends = f"{column.categories[0]}, ..."
        else:
            ends = str(column.categories[0])
    return (
        '<figure style="margin:0">'
        f'<svg width="{width}" height="{height}" role="img" '
        f'aria-label="histogram of {html_text(column.name)}">{"".join(bars)}</svg>'
        f'<figcaption style="max-width:{width}px"><b>{html_text(column.name)}</b><br>'
        f"{html_text(ends)}</figcaption></figure>"
    )
