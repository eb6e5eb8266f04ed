"""A fit of a table synthesizer: its stages, their budget fractions and their noise."""

import math
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from skdp._data._errors import column_name
from skdp._data._pair_scores import (
    chance_scores,
    independent_tables,
    pair_scores,
    pair_scores_of_rows,
    pair_tables,
    score_sensitivity,
)
from skdp._data._persons import row_weights_of
from skdp._fitting._findings import report_unmatched
from skdp._fitting._fit_progress import fit_stage
from skdp.accounting import Gaussian, PureDP, get_epsilon
from skdp.mechanisms._stages import Stage, stages_of
from skdp.stats._categories import CATEGORIES
from skdp.stats._column_plan import BOUNDS_FRACTION, KEY_SELECTION_FRACTION, ColumnsFit
from skdp.synthesis._cells import (
    MAX_RESOLVED_STEPS,
    CategoryCells,
    NumericCells,
    count_cells,
    joint_tables,
    read_cells,
)
from skdp.synthesis._groups import estimate_masses, group_cells
from skdp.synthesis._pair_choice import (
    COST_EXPONENT,
    MIN_TABLE_FRACTION,
    PURE_COST_EXPONENT,
    candidate_pairs,
    choose_pairs,
    table_fractions,
)
from skdp.utils._values import FrozenValue

# Budget fraction of the columns' counts: its minimum and maximum, and its value at a typical
# signal-to-noise ratio (n mu). It decreases with the fourth root of the ratio. Tuned on training
# rows of Adult.
COUNTS_FRACTIONS = (0.1, 0.3)
TYPICAL_COUNTS_FRACTION = 0.12
TYPICAL_SIGNAL = 8000.0
# Exponent of the cost of a column with k cells, where a row changes r counts: the expected total
# error of all columns is minimal if their fractions of the counts' budget are proportional to
# (k sqrt(r))**exponent, with Gaussian and with Laplace noise. On training rows (see
# docs/benchmarks/synthetic_constants.py), exponents of 0, 1/3, 2/3 give a mean utility of .677,
# .682, .683.
COUNT_COST_EXPONENT = 2.0 / 3.0
PURE_COUNT_COST_EXPONENT = 0.5
# Budget fraction for the scores of pairs.
SCORES_FRACTION = 0.08
# Minimum and maximum number of halvings of a numeric range, and the mean count of a finest cell in
# units of the whole budget's noise.
LEVELS = (3, 10)
MIN_SIGNAL_PER_CELL = 8.0
# Minimum and maximum number of groups of a numeric column, and the factor by which the cube root of
# the signal-to-noise ratio is multiplied. Tuned on training rows of Adult.
BINS = (4, 32)
BINS_FACTOR = 0.8
# Typical number of measured tables per column. It determines the noise level that the count of a
# group of cells has to reach.
TYPICAL_TABLES_PER_COLUMN = 2.0
# If the tables of all pairs have more than this number of cells, of 8 bytes each, they stay on
# workers.
MAX_SENT_CELLS = 1_000_000
# Maximum number of cells of a declared table, and of the tables of all pairs together. A fit needs
# several arrays of 8 bytes per cell.
MAX_TABLE_CELLS = 1 << 22
MAX_PAIR_CELLS = 1 << 24
# Margin for rounding when fractions are added.
FRACTION_MARGIN = 2.0**-40
# Public bound on the number of groups of a numeric column: bins of single cells, bins of the runs
# of cells between them, atoms and missing values.
MAX_GROUPS = 4 * BINS[1]


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyTable(FrozenValue):
    """A released table of counts.

    Parameters
    ----------
    columns : tuple of int
        Positions among the modeled columns.
    counts : ndarray of the shape of the columns' groups
    noise_std : float
        Standard deviation of the noise of each count.
    """

    columns: tuple
    counts: np.ndarray
    noise_std: float


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedStatistics(FrozenValue):
    """Everything that a fit releases, before the model is computed from it.

    Parameters
    ----------
    columns : list of GroupedColumn
    scores : dict of (int, int) to float
        Noisy scores of pairs, minus those of independent columns.
    score_std : float
    tables : list of NoisyTable
    seed : int
        Seed of the simulated rows, independent of the noise.
    n_units : int
        Public number of rows, or of persons.
    signal_to_noise : float
        Number of rows divided by the noise of a release with the whole budget.
    """

    columns: list
    scores: dict
    score_std: float
    tables: list
    seed: int
    n_units: int
    signal_to_noise: float


@dataclass(frozen=True, kw_only=True, eq=False)
class SynthesisFit(ColumnsFit):
    """A fit: counts of columns, scores of pairs and tables of chosen pairs.

    Parameters
    ----------
    modeled : tuple of int
        Positions of the columns that are modeled; others are copies of them.
    steps : tuple of float
        For each column, the step of the grid on which its values lie; 0 if they may be any real
        number.
    value_ranges : tuple of (float, float)
        For each column, the smallest and the largest value of its type.
    can_be_missing, can_be_other, can_be_text : tuple of bool
        For each column, True if its type can hold a missing value, a placeholder for values outside
        the categories, or a text.
    targets : tuple of int
        Positions of the target columns.
    workload : tuple of tuple of int
        Positions of the columns of tables that are measured in any case.
    """

    modeled: tuple
    steps: tuple
    value_ranges: tuple
    can_be_missing: tuple
    can_be_other: tuple
    can_be_text: tuple
    targets: tuple = ()
    workload: tuple = ()

    def __post_init__(self):
        super().__post_init__()
        # Noise that cannot be drawn is refused before the charge.
        if self.pairs:
            self._scores_mechanism.check_size(len(self.pairs))
            # Fractions are divided by their sum, which is less than 2.
            fraction = 0.5 * MIN_TABLE_FRACTION * self.budget_fractions["tables"]
            self._table_mechanism(fraction).check_size(self._max_table_cells)

    def check_bounds(self, names):
        """Raise `ValueError` if declared bounds contain no value that their column can hold."""
        for j in self.modeled:
            column = self.columns[j]
            if column.is_categorical or column.domain is None:
                continue
            if values_within(column.domain, self.steps[j], self.value_ranges[j]) is None:
                raise ValueError(
                    f"bounds: {column_name(j, names)} can hold no value between {column.domain[0]} "
                    f"and {column.domain[1]}, by its type and `decimals`"
                )

    @property
    def signal_to_noise(self):
        """Number of rows divided by the whole budget's noise: n mu, or n epsilon with delta = 0."""
        if self.budget.is_pure:
            return self.n_rows * self.guarantee.epsilon
        return self.n_rows * (1.0 / self.budget.multiplier)

    @cached_property
    def max_levels(self):
        """Number of times that a numeric range is halved."""
        ratio = max(self.signal_to_noise / MIN_SIGNAL_PER_CELL, 1.0)
        return int(np.clip(math.floor(math.log2(ratio)), *LEVELS))

    @property
    def levels(self):
        """Levels of dyadic cells that are counted."""
        return range(1, self.max_levels + 1)

    @cached_property
    def pairs(self):
        """Pairs of modeled columns that are scored."""
        required = {tuple(sorted(subset)) for subset in self.required if len(subset) == 2}
        return candidate_pairs(len(self.modeled), self._local(self.targets), required)

    @cached_property
    def required(self):
        """Tables of the workload, as positions among the modeled columns."""
        return [self._local(subset) for subset in self.workload if len(subset) > 1]

    @property
    def _max_table_cells(self):
        """Maximum number of cells of a table, from public facts."""
        sizes = {j: self.columns[j].max_cells(MAX_GROUPS) for j in self.modeled}
        two_largest = sorted(sizes.values())[-2:]
        workload = [math.prod(sizes[j] for j in subset) for subset in self.workload]
        workload = [min(n_cells, MAX_TABLE_CELLS) for n_cells in workload]
        return max(min(math.prod(two_largest), MAX_PAIR_CELLS), *workload, 1)

    def _local(self, positions):
        """Return the positions of columns among the modeled ones."""
        places = {j: i for i, j in enumerate(self.modeled)}
        return tuple(places[j] for j in positions)

    @cached_property
    def budget_fractions(self):
        """Fraction of the budget for each stage."""
        bounds = 0.0
        if self._undeclared(categorical=False):
            bounds = BOUNDS_FRACTION
        key_selection = 0.0
        if self._undeclared(categorical=True):
            key_selection = KEY_SELECTION_FRACTION
        remaining = 1.0 - bounds - key_selection - FRACTION_MARGIN
        fractions = {"bounds": bounds, "key_selection": key_selection}
        if not self.pairs:
            return fractions | {"counts": remaining, "scores": 0.0, "tables": 0.0}
        ratio = (TYPICAL_SIGNAL / self.signal_to_noise) ** 0.25
        counts = float(np.clip(TYPICAL_COUNTS_FRACTION * ratio, *COUNTS_FRACTIONS))
        fractions["counts"] = remaining * counts
        fractions["scores"] = remaining * SCORES_FRACTION
        fractions["tables"] = remaining - fractions["counts"] - fractions["scores"]
        return fractions

    @property
    def name(self):
        """Name of the mechanism."""
        noise = "Gaussian"
        if self.budget.is_pure:
            noise = "Laplace"
        return f"{noise} noise on counts of columns, scores of pairs and tables of chosen pairs"

    @property
    def scale(self):
        """Noise scale of a table if it had the budget of all tables."""
        return self._main_mechanism.scale

    @property
    def sensitivity(self):
        """Sensitivity of a table: in L2 norm, or in L1 norm with delta = 0."""
        return self._main_mechanism.sensitivity

    @property
    def noise_multiplier(self):
        """Noise scale of a table divided by its sensitivity; None with delta = 0."""
        return self.stages[-1].noise_multiplier

    @property
    def joint_noise_multiplier(self):
        """Noise multiplier of all stages together, as one release; None with delta = 0."""
        if self.budget.is_pure:
            return None
        return self.budget.multiplier

    @property
    def _main_mechanism(self):
        """The mechanism whose noise the privacy statement names: of a table, or of counts."""
        if self.pairs:
            return self._table_mechanism(self.budget_fractions["tables"])
        return self._counts_mechanism

    @property
    def stages(self):
        """Stages of a fit, in the order in which they run."""
        stages = []
        if self.key_selection is not None:
            stages.extend(stages_of(self.key_selection, CATEGORIES))
        if self.bounds_search is not None:
            stages.extend(self.bounds_search.stages)
        stages.append(self._stage("counts of columns", "counts", self._counts_mechanism))
        if self.pairs:
            stages.extend(stages_of(self._scores_mechanism, "scores of pairs of columns"))
            stages.append(self._stage("tables of chosen columns", "tables", self._main_mechanism))
        return tuple(stages)

    def _stage(self, name, stage, mechanism):
        """Return several releases with a common budget as one stage."""
        fraction = self.budget_fractions[stage]
        if self.budget.is_pure:
            noise = "Laplace"
            event = PureDP(fraction * self.guarantee.epsilon)
        else:
            noise = "Gaussian"
            event = Gaussian(self.budget.multiplier / math.sqrt(fraction))
        return Stage(
            name=name,
            law=f"{noise} mechanism, all tables as one, in units of each table's sensitivity",
            scale=mechanism.scale / mechanism.sensitivity,
            sensitivity=1.0,
            event=event,
        )

    @property
    def _counts_mechanism(self):
        """Mechanism of a column in which a row is counted once, with the budget of all columns."""
        return self._column_mechanism(1, self.budget_fractions["counts"])

    def _column_mechanism(self, counts_per_row, budget_fraction):
        """Return the mechanism of the counts of one column, or of the cells of one joint table.

        A row adds 1 to at most `counts_per_row` counts, so this is the L1 sensitivity and the
        squared L2 sensitivity under add/remove. Under replace-one both are twice as large.
        """
        l1_sensitivity = float(counts_per_row * self._sensitivity_factor)
        l2_sensitivity = math.nextafter(math.sqrt(l1_sensitivity), math.inf)
        return self.budget.mechanism(budget_fraction, l1=l1_sensitivity, l2=l2_sensitivity)

    @cached_property
    def _scores_mechanism(self):
        """Mechanism of the scores: a row changes each of them by 1, or 2 under replace-one."""
        l1, l2 = score_sensitivity(len(self.pairs), self._sensitivity_factor)
        return self.budget.mechanism(self.budget_fractions["scores"], l1=l1, l2=l2)

    def _table_mechanism(self, budget_fraction):
        """Return the mechanism of one table: a row is counted in one cell."""
        return self._column_mechanism(1, budget_fraction)

    def _grids(self, columns):
        """Return the cells of the modeled columns, whose domains are known."""
        grids = []
        for j in self.modeled:
            column = columns[j]
            if column.is_categorical:
                grid = CategoryCells(
                    index=j,
                    categories=column.domain,
                    can_be_other=self.can_be_other[j],
                    can_be_missing=self.can_be_missing[j],
                    can_be_text=self.can_be_text[j],
                )
            else:
                limits = (column.domain, self.steps[j], self.value_ranges[j])
                grid = NumericCells(
                    index=j,
                    kind=column.kind,
                    bounds=values_within(*limits) or nearest_values(*limits),
                    step=self.steps[j],
                    max_levels=self.max_levels,
                    counts_all_levels=not self.budget.is_pure,
                    can_be_missing=self.can_be_missing[j],
                )
            grids.append(grid)
        return grids

    def spent_after(self, stage):
        """Return the epsilon that a fit has spent after a stage, a key of `budget_fractions`."""
        spent = 0.0
        for name, fraction in self.budget_fractions.items():
            spent += fraction
            if name == stage:
                break
        if self.budget.is_pure:
            return spent * self.guarantee.epsilon
        return get_epsilon(self.budget.partial_event(spent), self.guarantee.delta)

    def run(self, table, source, persons=None):
        """Return the `ReleasedStatistics`.

        Parameters
        ----------
        table : ColumnTable
        source : RandomSource
        persons : Persons, default=None
            Persons of the rows.
        """
        # Each stream of the source is independent of the others, so the seed reveals no noise.
        seed = int(source.stream().words(1)[0]) >> 32
        row_weights = row_weights_of(persons)
        with fit_stage("counts of columns", partial(self.spent_after, "counts")):
            columns = self._find_domains(table, source, persons)
            grids = self._grids(columns)
            grouped = self._release_columns(grids, table, source, row_weights)
        scores = {}
        score_std = 0.0
        tables = []
        if self.pairs:
            scores, score_std, tables = self._release_tables(grouped, table, source, row_weights)
        return ReleasedStatistics(
            columns=grouped,
            scores=scores,
            score_std=score_std,
            tables=tables,
            seed=seed,
            n_units=self.n_rows,
            signal_to_noise=self.signal_to_noise,
        )

    def _release_columns(self, grids, table, source, row_weights):
        """Release the counts of all columns, and return the columns with groups of cells."""
        exact = count_cells(grids, table, row_weights)
        budget_fraction = self.budget_fractions["counts"]
        exponent = PURE_COUNT_COST_EXPONENT if self.budget.is_pure else COUNT_COST_EXPONENT
        fractions = count_fractions(grids, exponent)
        columns = []
        for grid, fraction, counts in zip(grids, fractions, exact, strict=True):
            queries = grid.queries(np.asarray(counts, dtype=np.float64))
            mechanism = self._column_mechanism(grid.counts_per_row, budget_fraction * fraction)
            noisy = mechanism.release(queries, random_state=source)
            columns.append(estimate_masses(grid, noisy, mechanism, float(self.n_rows)))
        self._report_unmatched(columns)
        typical_tables = TYPICAL_TABLES_PER_COLUMN * len(columns)
        table_std = self._table_mechanism(1.0 / typical_tables).deviation(size=1)
        n_bins = int(np.clip(round(BINS_FACTOR * self.signal_to_noise ** (1.0 / 3.0)), *BINS))
        min_counts = [max(column.noise_std, table_std) for column in columns]
        return self._group_columns(columns, n_bins, min_counts)

    def _group_columns(self, columns, n_bins, min_counts):
        """Return the columns with groups of cells, few enough for all tables to fit into memory.

        The number of groups follows from released counts, so it is not known before the charge.
        While a table of the workload, or the tables of all pairs together, have too many cells, the
        minimum count per group is doubled for the column with the most groups.
        """
        grouped = [group_cells(c, n_bins, m) for c, m in zip(columns, min_counts, strict=True)]
        while True:
            sizes = [column.n_groups for column in grouped]
            members = ()
            if sum(sizes[j] * sizes[k] for j, k in self.pairs) > MAX_PAIR_CELLS:
                members = range(len(sizes))
            for subset in self.required:
                if math.prod(sizes[j] for j in subset) > MAX_TABLE_CELLS:
                    members = subset
            if not members:
                return grouped
            largest = max(members, key=lambda j: sizes[j])
            min_counts[largest] *= 2.0
            grouped[largest] = group_cells(columns[largest], n_bins, min_counts[largest])

    def _report_unmatched(self, columns):
        """Warn about categorical columns in which nearly all values are outside the categories."""
        listed = {}
        scales = {}
        for column in columns:
            grid = column.grid
            if grid.is_categorical and len(grid.categories):
                listed[grid.index] = column.masses[: len(grid.categories)].sum()
                scales[grid.index] = column.noise_std
        report_unmatched(listed, scales, self.n_rows)

    def _release_tables(self, columns, table, source, row_weights):
        """Release the scores of pairs, then the chosen tables.

        Returns
        -------
        scores : dict of (int, int) to float
        score_std : float
        tables : list of NoisyTable
        """
        sizes = [column.n_groups for column in columns]
        lookups = [column.groups[column.grid.cell_of_raw] for column in columns]
        cells = read_cells([column.grid for column in columns], table)
        group_counts = [column.group_masses for column in columns]
        # If tables are too large for workers to send, they are counted in a second pass, after the
        # choice. The sizes depend only on released counts.
        n_cells = sum(sizes[j] * sizes[k] for j, k in self.pairs)
        tables = {}
        with fit_stage("scores of pairs of columns", partial(self.spent_after, "scores")):
            if n_cells > MAX_SENT_CELLS:
                exact_scores = pair_scores_of_rows(
                    cells, lookups, sizes, self.pairs, group_counts, self.n_rows, row_weights
                )
            else:
                exact = pair_tables(cells, lookups, sizes, self.pairs, row_weights)
                tables = dict(zip(self.pairs, exact, strict=True))
                expected = independent_tables(group_counts, self.pairs, self.n_rows)
                exact_scores = pair_scores(exact, expected, self.n_rows)
            noisy_scores = self._scores_mechanism.release(exact_scores, random_state=source)
        score_std = self._scores_mechanism.deviation(size=len(self.pairs))
        excess = noisy_scores - chance_scores(group_counts, self.pairs, self.n_rows)
        scores = dict(zip(self.pairs, excess.tolist(), strict=True))
        targets = self._local(self.targets)
        budget_fraction = self.budget_fractions["tables"]
        mean_error = self._table_mechanism(budget_fraction).mean_error(1)
        exponent = COST_EXPONENT
        if self.budget.is_pure:
            exponent = PURE_COST_EXPONENT
        chosen = choose_pairs(
            scores, score_std, sizes, targets, self.required, mean_error, exponent
        )
        others = [subset for subset in chosen if subset not in tables]
        joint = joint_tables(cells, lookups, sizes, others, row_weights)
        tables |= zip(others, joint, strict=True)
        noisy_tables = []
        fractions = table_fractions(chosen, sizes, targets, exponent)
        with fit_stage("tables of chosen columns", partial(self.spent_after, "tables")):
            for subset, fraction in zip(chosen, fractions, strict=True):
                mechanism = self._table_mechanism(budget_fraction * fraction)
                counts = np.asarray(tables[subset], dtype=np.float64)
                noisy = mechanism.release(counts, random_state=source)
                noise_std = mechanism.deviation(size=counts.size)
                noisy_tables.append(NoisyTable(columns=subset, counts=noisy, noise_std=noise_std))
        return scores, score_std, noisy_tables


def count_fractions(grids, exponent):
    """Return each column's fraction of the counts' budget; the fractions sum to at most 1.

    They depend only on the columns' domains, which are declared or have already been released.

    Parameters
    ----------
    grids : list of CategoryCells or NumericCells
    exponent : float
        Exponent of the costs.
    """
    costs = []
    for grid in grids:
        # Neighboring cells of numbers, and rare categories, are merged into groups.
        n_cells = min(grid.n_cells, BINS[1])
        costs.append((n_cells * math.sqrt(grid.counts_per_row)) ** exponent)
    total = math.fsum(costs)
    # The factor is a margin for rounding.
    return [cost / total * (1.0 - 2.0**-44) for cost in costs]


def values_within(bounds, step, value_range):
    """Return the smallest and the largest value that a column can hold within bounds, or None.

    Parameters
    ----------
    bounds : tuple of (float, float)
    step : float
        Step of the grid on which the column's values lie; 0 if they may be any real number.
    value_range : tuple of (float, float)
        Smallest and largest value of the column's type.

    Returns
    -------
    tuple of (float, float) or None
        None if the bounds contain no such value. The two values may be equal on a grid.
    """
    low, high = (max(bounds[0], value_range[0]), min(bounds[1], value_range[1]))
    # Beyond this limit, doubles are no finer than the grid, so bounds need no rounding to it.
    is_on_grid = step > 0.0 and max(-low, high) <= MAX_RESOLVED_STEPS * step
    if is_on_grid:
        # A bound that is a decimal value may differ from the multiple of the step by rounding.
        low = math.ceil(low / step - 1e-9) * step
        high = math.floor(high / step + 1e-9) * step
    if low < high or (is_on_grid and low == high):
        return low, high
    return None


def nearest_values(bounds, step, value_range):
    """Return a range of values that a column can hold, close to bounds that contain none.

    Found bounds may contain none. The parameters are those of `values_within`.
    """
    low = min(max(bounds[0], value_range[0]), value_range[1])
    width = max(bounds[1] - bounds[0], step)
    if step > 0.0 and abs(low) <= MAX_RESOLVED_STEPS * step:
        low = math.floor(low / step) * step
        width = math.ceil(width / step) * step
    if low + width <= value_range[1]:
        return low, low + width
    return low - width, low
