"""What a fit of an additive model releases, stage by stage, in one budget."""

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from skdp._data._parts import sum_over
from skdp._data._persons import row_weights_of
from skdp._sgd._clipped_sums import MAX_DECREASE_NORM, sum_loss_decreases
from skdp._sgd._defaults import MAX_NULL_FRACTION
from skdp._sgd._updates import ShrinkageRule
from skdp.accounting import Gaussian, PureDP, get_epsilon
from skdp.gam import _blocks, _descent
from skdp.gam._column_plan import ColumnsPlan
from skdp.gam._columns import PackedCells, Term, cells_of
from skdp.gam._evidence import explained_by_chance, least_strength, penalty_by_evidence
from skdp.gam._tasks import NumberTask
from skdp.mechanisms._stages import Stage, stages_of
from skdp.utils._fit_progress import progress_callback
from skdp.utils._units import ALL_ONCE, UnitText

# Where pairs are chosen: of the steps before, and of the choice.
PAIR_SHARES = {"first": 0.2, "choice": 0.1}
# What of the first steps' result the joint ones start from.
KEPT = 0.8
# W² of a column over the variance of scores; chosen with the tables of docs/planning.md in view.
EXPECTED_SQUARES = 6.0
# The part of a number's squares that its trend has: from the first to the second, and the first
# where this many rows are not of the most frequent class beside the noise (n mu times their
# frequency); it falls with the root of these. With cells alone a class of 3 % is learned cell by
# cell from a handful of rows. On training rows (docs/benchmarks/many_tables.py, 12 fits) the mean
# AUC of ten tables of classes rises by .002 to .012, of the rarest (Default) by .01 to .04, and the
# mean R² of nine tables of numbers by .007 to .011; a third everywhere costs Adult .0013 of AUC.
TREND_FRACTIONS = (0.1, 0.5)
TREND_ROWS = 1000.0
# From so many times 1 / mu rows on a choice of pairs is worth it, in regression.
LEAST_ROWS_MU = 5000.0
# At most so much, and no more than leaves noise of one so manieth of the rows in a value that a
# row moves by 1: its deviation, or its scale with delta = 0. A share that is so small is free.
CHECK_SHARE = (0.08, 100.0)
PURE_CHECK_SHARE = (0.08, 200.0)
FREE_SHARE = 0.001
# Of the penalty: a cell of no row keeps some even where noise is next to none.
LEAST_STRENGTH = 0.01
LARGEST_STRENGTH = 2.0
# With delta = 0 a range has 16 cells, however large noise is.
FEWEST_HALVINGS = 4
# The share of the variance of targets, for numbers: at most 5 %, at least .1 %, and otherwise what
# leaves noise of a thirtieth of the rows in a value that a row moves by 1.
VARIANCE_SHARE = 0.05, 30.0, FREE_SHARE
# How often the check subtracts what chance explains. It sees moves of scores that are cut at half
# of their usual size: a normal variable has P(|N| < 1/2) = .383 of its variance in common with
# itself, cut like that. The rest is for columns that are not independent of each other.
TIMES_CHANCE = 0.5
# The degrees of freedom of numbers' weights are at most this part of the rows.
MOST_DEGREES = 0.25
# The grid of residuals where their sums need not be exact.
EXACT_ENOUGH = 2.0**-200
IN_STEPS = UnitText(lambda unit: f"all {unit}s, in every step")


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditivePlan(ColumnsPlan):
    """A fit's plan; see `skdp.mechanisms._plan.Plan`.

    Parameters
    ----------
    task : task
        Of `skdp.gam._tasks`.
    declared_pairs : list of (int, int), default=()
    n_chosen : int, default=0
        How many pairs are chosen at most.
    signs : tuple of int, default=()
        Of columns, 1 or -1 where scores only rise or fall with them, else 0.
    """

    task: object
    declared_pairs: list = ()
    n_chosen: int = 0
    signs: tuple = ()

    # Whether numbers have a feature that rises from cell to cell.
    has_trends = True

    @property
    def finds_variance(self):
        """Whether the evidence chooses the penalty, which needs the variance of the targets.

        It does for numbers with delta > 0. Leaves of several trees are too dependent for it.
        """
        return not self.budget.pure and isinstance(self.task, NumberTask)

    @property
    def even(self):
        return not self.budget.pure

    @cached_property
    def levels(self):
        """Of numbers' cells those that are counted; with delta = 0 one, as fine as noise allows."""
        return self._levels_of(1.0, FEWEST_HALVINGS) if self.budget.pure else super().levels

    # The columns that are in no pair.
    @property
    def unpaired(self):
        return {j for j, sign in enumerate(self.signs) if sign}

    @property
    def name(self):
        kind = (
            "Objective perturbation, Laplace" if self.budget.pure else "Noisy gradients, Gaussian"
        )
        return f"{kind} noise, on private bins"

    @property
    def noise_multiplier(self):
        """That of all steps, were they one; None for objective perturbation."""
        return (
            None if self.budget.pure else self._steps_event(self.shares["steps"]).noise_multiplier
        )

    @property
    def stages(self):
        """All releases of a fit, in order."""
        shares = self.shares
        steps = []
        if "first" in shares:
            steps.append(self._steps_stage("first steps, for what columns do together", "first"))
        if "choice" in shares and self.n_chosen:
            steps += stages_of(self._choice_noise(len(self.columns)), "the choice of pairs")
        return (
            *self._stages_of_columns,
            *stages_of(self.center),
            *(stages_of(self.variance) if self.finds_variance else ()),
            *steps,
            self._steps_stage("weights", "steps"),
            *stages_of(self.checking, "check of the weights"),
        )

    def _steps_event(self, share):
        """Return what steps of a share of the budget cost."""
        if self.budget.pure:
            return PureDP(share * self.epsilon)
        return Gaussian(self.budget.multiplier / math.sqrt(share))

    def _steps_stage(self, name, stage):
        """Return steps as one stage: how many there are follows from the bins that are found."""
        share = self.shares[stage]
        noise = (
            self._objective(1.0, 1, 0.0, share)
            if self.budget.pure
            else self._steps_noise(1, 1, share)
        )
        law = (
            "Objective perturbation, Laplace noise"
            if self.budget.pure
            else "Noisy gradients, Gaussian noise, all steps as one"
        )
        known = {
            "scale": noise.scale,
            "sensitivity": self.sensitivity,
            "event": self._steps_event(share),
        }
        return Stage(name=name, law=law, reads=ALL_ONCE if self.budget.pure else IN_STEPS, **known)

    def __post_init__(self):
        super().__post_init__()
        largest = sum(2 * each.most_cells(4 * self.n_bins) for each in self.columns)
        largest = (largest + self._most_joint_cells) * self.task.n_outputs
        for share in {self.shares["steps"], self.shares.get("first", self.shares["steps"])}:
            if self.budget.pure:
                self._objective(1.0, largest, 0.0, share)
            else:
                for n_steps in (1, _descent.MOST_STEPS):
                    self._steps_noise(largest, n_steps, share)
        if self.n_chosen:
            if self.budget.pure:
                raise ValueError("pairs are chosen with delta > 0 only; declare interactions")
            self._choice_noise(len(self.columns)).check_size(largest * len(self.columns))
        self.center.check_size(self.task.n_outputs)
        if self.finds_variance:
            self.variance.check_size(1)
        self.checking.check_size(3)

    @property
    def _most_joint_cells(self):
        """How many cells of several columns there are at most."""
        return (len(self.declared_pairs) + self.n_chosen) * (2 * _blocks.TABLE_CELLS + 2) ** 2

    # What single columns have of the squares of the blocks' weights, beside joint cells.
    @property
    def main_share(self):
        return self.task.main_share

    # What choosing what columns do together gets of what is left of the whole.
    @property
    def _choice_shares(self):
        return PAIR_SHARES if self.n_chosen else {}

    @property
    def scale(self):
        """Of the noise of all steps, were they one."""
        step = self._objective(1.0, 1, 0.0) if self.budget.pure else self._steps_noise(1, 1)
        return step.scale

    @property
    def sensitivity(self):
        """By how much a gradient moves; with delta = 0 where a row's features have L1 norm 1."""
        return (self.task.clip_l1 if self.budget.pure else self.task.clip) * self._moved

    @property
    def total_excess_loss(self):
        """The summed loss expected above that of the best shapes, were all bins equally full.

        Noise is worth one release of the gradient and reaches a weight divided by its feature's
        curvature and the penalty. The penalty shrinks weights of squared norm W², whose scores have
        the variance spread², and with it W² h = n spread², as it does where all curvatures are h.
        """
        task = self.task
        terms = []
        for j, column in enumerate(self.columns):
            labels = column.is_label and column.known is not None
            cells = 2 + len(column.known) if labels else 1 + self.n_bins
            counts = np.full(cells, self.n_rows / cells)
            terms.append(Term(features=(j,), kinds=(column.kind,), edges=(), counts=counts))
        layout = self._main_layout(terms)
        problem = self._problem(layout)
        pure = self.budget.pure
        noise = math.sqrt(2.0) * problem.scale if pure else self._steps_noise(1, 1).scale
        bends = task.loss.trace_bound * layout.diagonal
        variance = np.sum(bends * (noise / (bends / task.n_outputs + problem.strength)) ** 2)
        whole = self.n_rows * task.loss.curvature_bound
        h = whole / (EXPECTED_SQUARES * (len(terms) + 1))
        shrunk = whole * task.spread**2 * problem.strength / (h + problem.strength)
        return task.unit * 0.5 * float(variance + shrunk)

    @property
    def clearness(self):
        """The number of rows beside the noise, n mu or n epsilon: what can be learned at all."""
        return self.n_rows * (self.epsilon if self.budget.pure else 1.0 / self.budget.multiplier)

    @property
    def pays_for_pairs(self):
        """Whether a choice of pairs is worth its price, as far as public numbers tell."""
        return self.task.has_pairs and not self.budget.pure and self.clearness >= LEAST_ROWS_MU

    @cached_property
    def shares(self):
        """What each stage gets of the whole."""
        power, check = (1.0, PURE_CHECK_SHARE) if self.budget.pure else (2.0, CHECK_SHARE)
        shares = {
            stage: min(most, max((ratio / self.clearness) ** power, least))
            for stage, most, ratio, least in (
                ("center", *self.task.center_share, self.task.least_center_share),
                ("check", *check, FREE_SHARE),
                *((("variance", *VARIANCE_SHARE),) if self.finds_variance else ()),
            )
        }
        rest = self.column_shares
        left = 1.0 - math.fsum(shares.values())
        rest |= self._choice_shares
        shares |= {stage: left * share for stage, share in rest.items()}
        return shares | {"steps": 1.0 - math.fsum(shares.values()) - 2.0**-50}

    @cached_property
    def center(self):
        """What releases the scores that the model begins at."""
        mechanism = partial(self.budget.mechanism, self.shares["center"])
        return self.task.center(self.n_rows, self._moved, mechanism)

    @cached_property
    def variance(self):
        """What releases the variance of the targets around the center."""
        mechanism = partial(self.budget.mechanism, self.shares["variance"])
        return self.task.variance(self.n_rows, mechanism)

    @cached_property
    def checking(self):
        """What releases the gains of the weights."""
        moved = {norm: length * self._moved for norm, length in MAX_DECREASE_NORM.items()}
        return self.budget.mechanism(self.shares["check"], **moved)

    def _steps_noise(self, size, n_steps, share=None):
        share = share or self.shares["steps"]
        return self.budget.noise(share, size, moved=self.sensitivity, n_steps=n_steps)

    def _choice_noise(self, n_pairs):
        moved = self.sensitivity * math.nextafter(math.sqrt(n_pairs), math.inf)
        return self.budget.mechanism(self.shares["choice"], l1=moved, l2=moved)

    def run(self, read, source, persons=None):
        """Return the terms, their values and the constant: all that is released.

        Parameters
        ----------
        read : RowsAndTarget
            A `ColumnTable`, and targets as the task takes them.
        source : RandomSource
        persons : Persons, default=None
            Whose the rows are.

        Returns
        -------
        terms : list of Term
        values : list of ndarray of shape (*shape of a term's cells, n_outputs)
        constant : ndarray of shape (n_outputs,)
        """
        table = read.X
        targets = read.y
        terms = self._counted(self._found(table, source, persons), table, source, persons)
        cells = self._cells(terms, table, targets, row_weights_of(persons))
        center = self.task.begin(self.center.run(targets, source, persons))
        variance = None
        if self.finds_variance:
            variance = self.variance.run(targets, float(center[0]), source, persons)
        residuals = partial(_residuals, self.task, center)
        layout = self._main_layout(terms, self._trend_fraction(center))
        start, joined = self._joined(terms, cells, layout, residuals, source)
        if joined:
            joint = _blocks.joint_layout(layout, joined, self.main_share)
            start = None if start is None else KEPT * joint.moved_from(layout, start)
            layout = joint
            cells = _blocks.extended(cells, joined)
            terms = [*terms, *(each.term(terms, self.n_rows) for each in joined)]
        weights, strength = self._descent(
            cells,
            layout,
            residuals,
            source,
            share=self.shares["steps"],
            start=start,
            variance=variance,
            told=True,
        )
        if not self.finds_variance:
            strength = self._final_strength(layout, weights)
        kept = self._kept(cells, layout, residuals, weights, strength, source)
        tables = layout.tables(weights * kept)
        values = [tables[t].reshape(*term.shape, -1) for t, term in enumerate(terms)]
        return terms, values, center + tables[-1][0]

    def _main_layout(self, terms, trend_fraction=0.0):
        # Laplace's noise grows with the number of blocks: there neighbors are tied instead.
        return _blocks.main_layout(
            terms,
            self.n_rows,
            self.clearness,
            coarser=not self.budget.pure,
            trend_fraction=trend_fraction,
        )

    def _trend_fraction(self, center):
        """Return the part of a number's squares that its trend has, from released numbers.

        Parameters
        ----------
        center : ndarray of shape (n_outputs,)
            The released scores at which the model begins.
        """
        if self.budget.pure or not self.has_trends:
            return 0.0
        least, most = TREND_FRACTIONS
        rows = self.clearness * self.task.minority(center)
        return float(np.clip(least * math.sqrt(TREND_ROWS / max(rows, 1.0)), least, most))

    def _cells(self, terms, table, targets, row_weights=None):
        """Return the packed cells of the rows of a table."""
        known = {"sizes": [term.counts.size for term in terms], "n_units": self.n_rows}
        return PackedCells(
            cells_of(table, terms), list, targets=targets, row_weights=row_weights, **known
        )

    def _joined(self, terms, cells, layout, residuals, source):
        """Return weights to start from, if there are, and what several columns do together."""
        if not self.n_chosen:
            return None, [_blocks.pair_of(terms, places) for places in self.declared_pairs]
        start, _ = self._descent(cells, layout, residuals, source, share=self.shares["first"])
        return start, self._chosen(terms, cells, layout, residuals, start, source)

    def _kept(self, cells, layout, residuals, weights, strength, source):
        """Return the share of weights that explains more than chance; see `ShrinkageRule`.

        `strength` is the penalty that they were fitted with, None for the first one.
        """
        if self.finds_variance:
            chance = explained_by_chance(layout, strength) / self.n_rows
            times = TIMES_CHANCE
        else:
            chance = self._chance(layout, strength)
            times = self.task.null_decrease_factor
        check = ShrinkageRule(1, 1.0, self.task.clip, chance, self.task.least_kept, times)
        # Their mean square is about that of the scores.
        moved = weights * np.sqrt(layout.diagonal * (layout.size / self.n_rows))[:, None]
        small = _descent.Scores.at(weights, cells, layout), residuals, check.clip_norms(moved)
        gains = sum_over(cells, _add_gains, np.zeros(3), *small)
        gains = self.checking.release(gains, random_state=source)
        return check.shrinkage_factor(gains, moved, self.checking.deviation(3))

    def _chosen(self, terms, cells, layout, residuals, weights, source):
        """Return the pairs that the residuals of some weights ask for."""
        candidates = _blocks.all_pairs(terms, self.unpaired)
        step = _descent.residual_grid(self.task.clip, self.n_rows)
        scores = _descent.Scores.at(weights, cells, layout)
        sums = _blocks.pair_sums(cells, candidates, scores, residuals, step)
        noise = self._choice_noise(len(candidates))
        noisy = noise.release(sums, random_state=source)
        chosen = _blocks.chosen_pairs(candidates, noisy, noise.scale, self.n_chosen)
        return [_blocks.pair_of(terms, pair.places) for pair in chosen]

    def _problem(self, layout, share=None):
        """Return the steps, or with delta = 0 the objective that takes their place.

        Their penalty is one by which noise moves no score by much.
        """
        bend = self.task.loss.curvature_bound * layout.bend(self.n_rows)
        if self.budget.pure:
            size = layout.size * self.task.n_outputs
            return self._objective(layout.weights_sum, size, bend, share)
        asked = self._steps_noise(1, 1, share).scale / self.task.spread
        strength = max(asked, bend / _descent.CONDITION, LEAST_STRENGTH)
        if self.finds_variance:
            strength = max(strength, least_strength(layout, MOST_DEGREES * self.n_rows))
        return _descent.Schedule(bend=bend, strength=strength, quiet=strength / asked)

    def _final_strength(self, layout, weights):
        """Return the L2 penalty that the released weights were fitted with, or None.

        With delta > 0 the evidence raises the penalty half-way through the steps. The decrease of
        the loss that is expected by chance falls with it (Efron 2004): computed with the penalty
        before, it is several times too large on small tables, and good weights are thrown away.
        """
        if self.budget.pure:
            return None
        problem = self._problem(layout)
        noise_std = self._steps_noise(weights.size, problem.n_steps).scale
        evidence = self._evident_strength(layout, weights, problem, noise_std)
        return max(problem.strength, evidence)

    def _chance(self, layout, strength=None):
        """Return the part of the residuals' variance that weights explain by chance.

        Parameters
        ----------
        layout : Layout
        strength : float, default=None
            The L2 penalty of the weights; None is the one that steps begin with.
        """
        moments = layout.diagonal
        problem = self._problem(layout)
        if strength is not None:
            problem = replace(problem, strength=strength)
        bends = (self.task.typical_curvature or self.task.loss.curvature_bound) * moments
        if self.budget.pure:
            response = 1.0 / (bends + problem.strength)
        else:
            start = np.zeros(layout.size)
            response, _ = _descent.descend(lambda w: bends * w - 1.0, problem, start, math.inf)
        # Where there are about as many cells as rows it says nothing: the check takes it for less.
        return min(self.task.overlap * float(moments @ response) / self.n_rows, MAX_NULL_FRACTION)

    def _objective(self, weights_sum, size, bend, share=None):
        """Return what takes the place of steps with delta = 0."""
        by_person = self.guarantee.neighbors.unit == "person"
        return _descent.PerturbedObjective(
            epsilon=(share or self.shares["steps"]) * self.epsilon,
            task=self.task,
            moved=self.sensitivity * weights_sum,
            size=size,
            n_rows=self.n_rows,
            bend=bend,
            # A person's part of the Hessian has any rank.
            rank=size if by_person else self.task.loss.curvature_rank,
        )

    def spent_after(self, taken, n_steps):
        """Return the epsilon of a fit that has taken some of its steps."""
        share = 1.0 - self.shares["steps"] * (1.0 - taken / n_steps)
        return get_epsilon(self.budget.event_of(share), self.delta)

    def _descent(
        self, cells, layout, residuals, source, *, share, start=None, variance=None, told=False
    ):
        """Return the weights, and the penalty that they were found with."""
        problem = self._problem(layout, share)
        # Where sums are not exact a longer block rounds more, for which there is more noise.
        rows = cells if self.budget.pure else cells.in_steps(self.task.n_outputs)
        gradient = partial(_descent.residual_sums, rows, layout, residuals)
        if self.budget.pure:
            gradient = partial(gradient, step=EXACT_ENOUGH)
            weights = problem.run(lambda w: gradient(w) + problem.strength * layout.ties(w), source)
            return weights, problem.strength
        start = np.zeros((layout.size, self.task.n_outputs)) if start is None else start
        noise = self._steps_noise(start.size, problem.n_steps, share)
        draws = noise.draw(problem.n_steps, source.stream())
        step = _descent.residual_grid(self.task.clip, self.n_rows)
        n_steps = problem.n_steps
        spent_after = partial(self.spent_after, n_steps=problem.n_steps)
        if variance is None:

            def penalty(weights):
                return self._evident_strength(layout, weights, problem, noise.scale)

        else:
            penalty = partial(
                penalty_by_evidence,
                layout,
                schedule=problem,
                variance=variance,
                step_noise=noise.scale,
                noise=self._steps_noise(1, 1, share).scale,
            )
        return _descent.descend(
            lambda weights: noise.add(gradient(weights, step), next(draws)),
            problem,
            start,
            # No optimum is farther: its loss would exceed that of zero weights.
            math.sqrt(2.0 * self.n_rows * self.task.largest_loss / problem.strength),
            penalty=penalty,
            after_step=progress_callback(n_steps, n_steps, spent_after) if told else None,
        )

    def _evident_strength(self, layout, weights, schedule, deviation):
        """Return the penalty that weights ask for: 1 over their variance without the noise.

        MacKay's rule for the prior's precision: the number of weights that the data determine,
        over the squared norm of these. It is computed from released numbers alone.
        """
        if not self.task.typical_curvature:
            return 0.0
        bends = self.task.typical_curvature * layout.diagonal[:, None]
        reach = bends + schedule.strength
        noise = 2.0 / schedule.n_steps * np.sum((deviation / reach) ** 2) * weights.shape[1]
        determined = np.sum(bends / reach) * weights.shape[1]
        norm = np.sum(weights[1:] ** 2) - noise
        return determined / max(norm, determined / LARGEST_STRENGTH)


def _residuals(task, center, scores, targets):
    return task.residuals(scores + center, targets)


def _add_gains(gains, block, scores, residuals, units):
    after = scores(block)
    of_rows = [residuals(share * after, block.targets) for share in (0.0, 1.0)]
    gains += sum_loss_decreases(after, *of_rows, units, block.row_weights)
