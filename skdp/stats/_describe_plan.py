"""Plan of the description of a table: domains, counts of all columns, scores of pairs."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skdp._data._chunked import ChunkedArray
from skdp._data._dyadic import merge_cells
from skdp._data._histogram import check_edges
from skdp._data._pair_scores import (
    all_pairs,
    chance_scores,
    independent_tables,
    max_scores,
    pair_scores,
    pair_tables,
    score_sensitivity,
)
from skdp._data._parts import Rows, map_over
from skdp._data._persons import row_weights_of
from skdp.mechanisms._stages import stages_of
from skdp.stats._column_cells import (
    binary_edges,
    cells_of,
    exact_counts,
    integer_edges,
    with_atoms,
    with_finer_bin_at_zero,
)
from skdp.stats._column_plan import ColumnsFit
from skdp.stats._count_tree import CountTree
from skdp.utils._values import FrozenValue

# Budget weights of the stages, which are normalized over the stages that are needed. Searches
# receive up to twice the fraction that they receive in a fit, because the schema is meant for fits.
# Tuned on training rows of Adult and of ten small tables, by the errors of the document's numbers.
BOUNDS_WEIGHT = 0.12
KEY_SELECTION_WEIGHT = 0.18
COUNTS_WEIGHT = 0.55
PAIR_SCORES_WEIGHT = 0.15
# Scores of pairs are released if the noise in each is at most this fraction of the rows.
# Associations, which are relative to about the number of rows, then have an error of a few percent.
MAX_SCORE_NOISE = 0.05
# Minimum average count of a cell of the finest level, in standard deviations of its noise. With
# delta = 0 there is one level, whose cells are those of the histogram.
MIN_CELL_STDS = 0.5
MIN_PURE_CELL_STDS = 4.0
MIN_LEVELS = 4
# A histogram has at most 2**MAX_BIN_LEVEL bins of equal width, each of which is a sum of cells.
MAX_BIN_LEVEL = 5
# Half the width of a cell for a bound or for 0, relative to the width of other cells.
ATOM_WIDTH = 2.0**-10
# Number of groups, besides missing values, into which a column's values are divided for tables of
# pairs. More groups reveal finer dependence but raise the score that arises by chance.
N_GROUPS = 8
# Minimum number of rows in a group, in standard deviations of a count's noise.
MIN_GROUP_STDS = 3.0
# Edges of the bins for the number of rows per person; the last bin has no upper edge.
ROWS_OF_PERSON_EDGES = np.array(
    [1, 2, 3, 4, *(round(2.0**k * f) for k in range(2, 20) for f in (1.5, 2.0))]
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ColumnCounts(FrozenValue):
    """Released counts of a column.

    Parameters
    ----------
    column : Column
        Kind and domain, which was declared or found.
    is_declared : bool
        True if the domain was declared.
    noise_std : float
        Standard deviation of the noise in a released count.
    tree : CountTree, default=None
        Counts of a numeric column.
    edges : ndarray, default=None
        Edges of the cells of a numeric column.
    is_integer : bool, default=False
        True if the cells are runs of integers.
    counts : ndarray of shape (n_categories + 2,), default=None
        Counts of the categories, other values and missing values of a categorical column.
    """

    column: object
    is_declared: bool
    noise_std: float
    tree: CountTree | None = None
    edges: np.ndarray | None = None
    is_integer: bool = False
    counts: np.ndarray | None = None

    @property
    def count_std(self):
        """Standard deviation of the counts of a categorical column, given that their sum is known.

        It is 0 if there is a single count, since that is the number of rows.
        """
        return self.noise_std * math.sqrt(1.0 - 1.0 / len(self.counts))

    def cell_ends(self):
        """Return the smallest and the largest value of each cell of a numeric column.

        Returns
        -------
        starts, ends : ndarray of shape (n_cells,)
            They are within the domain, and equal for a cell with a single value.
        """
        low, high = self.column.domain
        starts, ends = self.edges[:-1], self.edges[1:]
        if self.is_integer:
            starts, ends = np.ceil(starts), np.floor(ends)
        starts, ends = np.clip(starts, low, high), np.clip(ends, low, high)
        mean_width = (self.edges[-1] - self.edges[0]) / len(starts)
        # Other cells are wider, even those near 0.
        is_atom = np.diff(self.edges) < 4.0 * ATOM_WIDTH * mean_width
        for atom in (low, 0.0, high):
            is_here = is_atom & (self.edges[:-1] <= atom) & (atom <= self.edges[1:])
            starts[is_here] = ends[is_here] = atom
        return starts, ends

    def groups(self):
        """Return the groups of cells by which pairs of columns are counted.

        Returns
        -------
        groups : ndarray of int of shape (n_cells,)
            Group of each cell. The cell of missing values comes last and is a separate group.
        counts, stds : ndarray of shape (n_groups,)
            Released counts of the groups, and the standard deviations of their noise.
        """
        if self.tree is not None:
            return self._numeric_groups()
        is_large = self.counts >= MIN_GROUP_STDS * self.noise_std
        # Other values are grouped with the rare categories; missing values form a separate group.
        is_large[-2:] = False
        largest = np.argsort(-self.counts[:-2], kind="stable")[:N_GROUPS]
        is_large &= np.isin(np.arange(len(is_large)), largest)
        groups = np.full(len(self.counts), is_large.sum())
        groups[is_large] = np.arange(is_large.sum())
        groups[-1] = is_large.sum() + 1
        counts = np.bincount(groups, weights=self.counts)
        return groups, counts, self.noise_std * np.sqrt(np.bincount(groups))

    def _numeric_groups(self):
        """Return `groups` of a numeric column: runs of neighboring cells with enough rows."""
        tree = self.tree
        starts = merge_cells(tree.counts, N_GROUPS, MIN_GROUP_STDS * self.noise_std)
        groups = np.searchsorted(starts, np.arange(tree.n_cells), side="right") - 1
        counts = np.append(np.add.reduceat(tree.counts, starts), tree.n_missing)
        # The count of a group is the difference between two ranks, whose errors are nearly
        # independent.
        ends = np.append(starts[1:], tree.n_cells)
        middle = 0.5 * (starts + ends) / tree.n_cells
        stds = [
            math.hypot(*tree.rank_stds(fraction)[[start, end]])
            for fraction, start, end in zip(middle, starts, ends, strict=True)
        ]
        stds = np.append(stds, tree.total_std)
        return np.append(groups, len(starts)), counts, stds


@dataclass(frozen=True, kw_only=True, eq=False)
class PairScores(FrozenValue):
    """Released scores of pairs of columns, relative to the largest ones.

    Parameters
    ----------
    pairs : list of (int, int)
    associations : ndarray of shape (n_pairs,)
        Distance from independence, between 0 and 1; NaN if nearly all values of a column are equal.
    stds : ndarray of shape (n_pairs,)
        Standard deviations of their noise, which includes the noise in the columns' counts.
    chances : ndarray of shape (n_pairs,)
        Associations expected for independent columns.
    """

    pairs: list
    associations: np.ndarray
    stds: np.ndarray
    chances: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedDescription(FrozenValue):
    """Everything that the plan of a description releases.

    Parameters
    ----------
    columns : list of ColumnCounts
    pair_scores : PairScores or None
        None if no scores were released.
    rows_of_persons : ndarray or None
        Noisy numbers of persons by their number of rows, in the bins of `ROWS_OF_PERSON_EDGES`.
        None if the unit is not a person.
    noise_std : float
        Standard deviation of the noise in a released count.
    is_gaussian : bool
        False for Laplace noise.
    """

    columns: list
    pair_scores: PairScores | None
    rows_of_persons: np.ndarray | None
    noise_std: float
    is_gaussian: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class DescriptionFit(ColumnsFit):
    """Release of the description of a table.

    The stages are the search for bounds and categories, the counts of all columns, and the scores
    of all pairs of columns. Their budget fractions add up to 1.

    Parameters
    ----------
    is_integer : sequence of bool of length n_columns
        True for columns with an integer type.
    uses_associations : bool, default=True
        False to leave out the scores of pairs.
    """

    is_integer: tuple
    uses_associations: bool = True

    name = "Noisy counts of cells, and noisy scores of pairs of columns"

    def __post_init__(self):
        super().__post_init__()
        # Cells that cannot be counted are refused before the charge.
        for j, column in enumerate(self.columns):
            if column.kind == "number" and column.domain is not None:
                check_edges(self._number_edges(column, self.is_integer[j]), f"bounds of column {j}")
        if self.releases_scores:
            self.scores_mechanism.check_size(len(self.pairs))

    @property
    def scale(self):
        return self._counts_mechanism.scale

    @property
    def sensitivity(self):
        return self._counts_mechanism.sensitivity

    @property
    def is_by_person(self):
        """True if the unit is a person. The numbers of rows per person are then also counted."""
        return self.guarantee.neighbors.unit == "person"

    @property
    def n_other_counts(self):
        """Number of counts of a unit besides those of its columns: 1 for the rows of a person."""
        return int(self.is_by_person)

    @cached_property
    def pairs(self):
        """Pairs of columns, in lexicographic order."""
        return all_pairs(len(self.columns))

    def _fractions(self, *, with_scores):
        """Return the budget fractions of the stages, which add up to at most 1."""
        weights = {"bounds": 0.0, "key_selection": 0.0, "counts": COUNTS_WEIGHT, "pair_scores": 0.0}
        if self._undeclared(categorical=False):
            weights["bounds"] = BOUNDS_WEIGHT
        if self._undeclared(categorical=True):
            weights["key_selection"] = KEY_SELECTION_WEIGHT
        if with_scores:
            weights["pair_scores"] = PAIR_SCORES_WEIGHT
        total = math.fsum(weights.values()) * (1.0 + 2.0**-50)
        return {stage: weight / total for stage, weight in weights.items()}

    def _scores_mechanism_for(self, budget_fraction):
        l1, l2 = score_sensitivity(len(self.pairs), self._sensitivity_factor)
        return self.budget.mechanism(budget_fraction, l1=l1, l2=l2)

    @cached_property
    def releases_scores(self):
        """True if public facts show that the scores are useful despite their noise."""
        if not self.uses_associations or not self.pairs:
            return False
        mechanism = self._scores_mechanism_for(self._fractions(with_scores=True)["pair_scores"])
        return mechanism.deviation(size=len(self.pairs)) <= MAX_SCORE_NOISE * self.n_rows

    @cached_property
    def budget_fractions(self):
        """Budget fraction of each stage."""
        return self._fractions(with_scores=self.releases_scores)

    @property
    def scores_mechanism(self):
        """Mechanism of the scores of all pairs."""
        return self._scores_mechanism_for(self.budget_fractions["pair_scores"])

    @cached_property
    def levels(self):
        """Levels of dyadic cells that are counted."""
        min_stds = MIN_CELL_STDS
        if self.budget.is_pure:
            min_stds = MIN_PURE_CELL_STDS
        return self._choose_levels(min_stds, MIN_LEVELS)

    @property
    def stages(self):
        """Stages of the release, in the order in which they run."""
        stages = [*self._column_stages]
        if self.releases_scores:
            stages.extend(stages_of(self.scores_mechanism, "scores of pairs of columns"))
        return tuple(stages)

    def run(self, table, source, persons=None):
        """Release the counts of all columns and the scores of pairs.

        Parameters
        ----------
        table : ColumnTable
        source : RandomSource
            The source that the charge returned.
        persons : Persons, default=None
            Person of each row.

        Returns
        -------
        ReleasedDescription
        """
        columns = self._find_domains(table, source, persons)
        row_weights = row_weights_of(persons)
        terms = self._finest_terms(columns)
        cells = _cells_for_passes(cells_of(table, terms), table)
        exact = exact_counts(terms, table, row_weights, coarsest=self.levels[0], cells=cells)
        if self.is_by_person:
            exact.append(_count_rows_of_persons(persons)[np.newaxis])
        noisy = [counts[0] for counts in self._release_counts(exact, source)]
        noise_std = self._counts_mechanism.deviation(size=sum(map(len, noisy)))
        rows_of_persons = None
        if self.is_by_person:
            # These counts were appended last; `noisy` then has those of the columns, like `terms`.
            rows_of_persons = noisy.pop()
        released = []
        for j, (term, counts) in enumerate(zip(terms, noisy, strict=True)):
            released.append(self._read_counts(columns[j], term, counts, noise_std))
        scores = None
        if self.releases_scores:
            scores = self._release_scores(released, cells, row_weights, source)
        return ReleasedDescription(
            columns=released,
            pair_scores=scores,
            rows_of_persons=rows_of_persons,
            noise_std=noise_std,
            is_gaussian=not self.budget.is_pure,
        )

    def _finest_terms(self, columns):
        """Return one term per column, with the finest cells of numeric columns.

        Integer columns have edges midway between integers. The bounds and 0 have separate cells.
        """
        terms = super()._finest_terms(columns)
        for j, column in enumerate(columns):
            if column.kind != "number":
                continue
            terms[j] = replace(terms[j], edges=(self._number_edges(column, self.is_integer[j]),))
        return terms

    def _number_edges(self, column, is_integer):
        """Return the edges of the finest cells of a column of numbers."""
        n_cells = 1 << self.levels[-1]
        edges = None
        if is_integer:
            edges = integer_edges(column.domain, n_cells)
        if edges is not None and edges[1] - edges[0] == 1.0:
            return edges
        has_integers = edges is not None
        if not has_integers:
            edges = binary_edges(column.domain, n_cells)
        if edges is None:
            edges = self._edges(column)
        if n_cells < 2 << MAX_BIN_LEVEL:
            # The cells may serve as bins, whose widths must be equal.
            return edges
        low, high = column.domain
        if low <= 0.0 <= high:
            atoms = {low, 0.0, high}
        else:
            atoms = {low, high}
        finer = with_finer_bin_at_zero(edges, 1 << MAX_BIN_LEVEL, is_integer=has_integers)
        # The cell of an integer is as wide as the distance between two integers.
        half_width = 0.5
        if not has_integers:
            half_width = ATOM_WIDTH * float(np.diff(finer).min())
        return with_atoms(finer, sorted(atoms), half_width)

    def _find_domains(self, table, source, persons=None):
        """Return the columns with their domains; bounds found for integers are integers."""
        columns = super()._find_domains(table, source, persons)
        for j in self._undeclared(categorical=False):
            if self.is_integer[j] and columns[j].kind == "number":
                low, high = columns[j].domain
                low, high = float(math.ceil(low)), float(math.floor(high))
                if low < high:
                    columns[j] = replace(columns[j], domain=(low, high))
        return columns

    def _read_counts(self, column, term, noisy, noise_std):
        """Return the `ColumnCounts` of a column from its noisy counts, which is post-processing."""
        (edges,) = term.edges
        (j,) = term.features
        is_declared = self.columns[j].domain is not None
        if column.is_categorical:
            # The counts of all cells add up to the public number of rows.
            excess = (noisy.sum() - self.n_rows) / len(noisy)
            counts = np.clip(noisy - excess, 0.0, self.n_rows)
            return ColumnCounts(
                column=column, is_declared=is_declared, noise_std=noise_std, counts=counts
            )
        coarsest = min(self.levels[0], (len(edges) - 1).bit_length() - 1)
        tree = CountTree(noisy, noise_std, self.n_rows, coarsest)
        is_integer = bool(self.is_integer[j] and edges[0] % 1.0 == 0.5)
        return ColumnCounts(
            column=column,
            is_declared=is_declared,
            noise_std=noise_std,
            tree=tree,
            edges=edges,
            is_integer=is_integer,
        )

    def _release_scores(self, columns, cells, row_weights, source):
        """Return the `PairScores`: scores with noise, relative to the largest ones."""
        groups, counts, stds = zip(*(column.groups() for column in columns), strict=True)
        sizes = list(map(len, counts))
        tables = pair_tables(cells, groups, sizes, self.pairs, row_weights)
        expected = independent_tables(counts, self.pairs, self.n_rows)
        exact = pair_scores(tables, expected, self.n_rows)
        del tables
        mechanism = self.scores_mechanism
        noisy = mechanism.release(exact, random_state=source)
        del exact
        score_std = mechanism.deviation(size=len(self.pairs))
        largest = max_scores(counts, self.pairs, self.n_rows)
        # An error in a released count changes a score by no more than the error itself.
        count_variances = [float((column_stds**2).sum()) for column_stds in stds]
        variances = score_std**2 + np.array(
            [count_variances[j] + count_variances[k] for j, k in self.pairs]
        )
        chances = chance_scores(counts, self.pairs, self.n_rows, stds)
        with np.errstate(all="ignore"):
            is_known = largest > 2.0 * np.sqrt(variances)
            associations = np.where(is_known, np.clip(noisy / largest, 0.0, 1.0), np.nan)
            relative_stds = np.where(is_known, np.sqrt(variances) / largest, np.nan)
            relative_chances = np.where(is_known, chances / largest, np.nan)
        return PairScores(
            pairs=self.pairs,
            associations=associations,
            stds=relative_stds,
            chances=relative_chances,
        )


def _cells_for_passes(cells, table):
    """Return the cells of a table for several passes: for the counts, and for the scores of pairs.

    The cells of a table in memory are computed once and stored, each in two bytes. Those of a
    partitioned table stay with the partitions and are computed in each pass.
    """
    if isinstance(table.matrix, ChunkedArray):
        return cells
    n_columns = cells.shape[1]
    codes = map_over(cells, np.transpose, shape=(n_columns,), dtype=np.uint16)
    return Rows(codes, read=_read_codes)


def _read_codes(codes, rows):
    """Return stored cells of a slice of rows in the shape of `cells_of`: (n_columns, n_rows)."""
    return np.ascontiguousarray(codes[rows].T).astype(np.int64)


def _count_rows_of_persons(persons):
    """Return the exact numbers of persons by their number of rows; each person is counted once."""
    n_rows = np.bincount(persons.codes, minlength=persons.n_persons)
    bins = np.searchsorted(ROWS_OF_PERSON_EDGES, n_rows, side="right") - 1
    return np.bincount(bins, minlength=len(ROWS_OF_PERSON_EDGES)).astype(np.float64)
