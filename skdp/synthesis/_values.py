"""Values of simulated cells (post-processing)."""

import numpy as np

from skdp._data._frames import objects
from skdp.synthesis._cells import MAX_RESOLVED_STEPS
from skdp.synthesis._table_form import OTHER_TEXT, days_as_times


def cell_values(grid, cells, rng):
    """Return a value for each cell.

    Parameters
    ----------
    grid : CategoryCells or NumericCells
    cells : ndarray of shape (n_rows,), dtype int64
    rng : RandomState

    Returns
    -------
    ndarray of shape (n_rows,)
        Objects with None for missing values; or floats with NaN, dates or durations.
    """
    if grid.is_categorical:
        labels = [*grid.categories.tolist(), placeholder(grid.categories), None]
        if not (grid.can_be_other or grid.can_be_missing):
            # No category was found in a column that contains only numbers.
            labels[-2:] = [0, 0]
        elif not (labels[:-2] or grid.can_be_text):
            # No category was found, and the column's type does not hold the text "other".
            labels[-2] = 0
            if grid.can_be_missing:
                labels[-2] = None
        return objects(labels)[cells]
    numbers = _numbers(grid, cells, rng)
    if grid.kind == "number":
        return numbers
    return days_as_times(numbers, grid.kind)


def placeholder(categories):
    """Return the label of values outside the categories: "other"; None for numeric categories."""
    listed = categories.tolist()
    if any(isinstance(label, bytes) for label in listed):
        return OTHER_TEXT.encode()
    if listed and not any(isinstance(label, str) for label in listed):
        return None
    label = OTHER_TEXT
    while label in listed:
        label += "_"
    return label


def _numbers(grid, cells, rng):
    """Return a number for each cell of a numeric column, NaN for missing values.

    Within a cell of positive width, the number is random. It is rounded down to a multiple of the
    step if doubles resolve the steps.
    """
    low, high = grid.bounds
    if grid.has_value_cells:
        numbers = low + cells * grid.step
    else:
        numbers = low + (cells + rng.random_sample(len(cells))) * grid.width
        if 0.0 < max(-low, high) <= MAX_RESOLVED_STEPS * grid.step:
            numbers = np.floor(numbers / grid.step) * grid.step
    if 0.0 < grid.step < 1.0:
        # The result is the double closest to the decimal text of the multiple.
        numbers = np.round(numbers, round(-np.log10(grid.step)))
    for i, atom in enumerate(grid.atoms):
        numbers[cells == grid.n_equal_cells + i] = atom
    numbers = np.clip(numbers, low, high)
    numbers[cells == grid.n_cells - 1] = np.nan
    return numbers
