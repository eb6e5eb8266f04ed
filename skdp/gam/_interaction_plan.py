"""Plan of an additive model that privately chooses tables of two or three columns.

The choice is made in two rounds: pairs after the first steps on single columns, then further pairs
and triples after steps with the chosen pairs. In each round every candidate has one score
(`skdp.gam._tables`). The exponential mechanism chooses a few candidates, and a second release of
their scores, with Gaussian noise, confirms or rejects each of them. The proof is in
``docs/theory/additive_models.md``, section 7.
"""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from skdp._data._parts import sum_over
from skdp._data._sums import exact_sum
from skdp.accounting import ExponentialMechanism as ExponentialMechanismEvent
from skdp.accounting import Gaussian
from skdp.gam import _descent
from skdp.gam._plan import MAX_JOINT_CELLS, MIN_CLIP, AdditiveFit
from skdp.gam._tables import CHOICE_CELLS, InteractionScore, make_table, table_cells, table_sums
from skdp.gam._tasks import NumberTask
from skdp.mechanisms import ExponentialMechanism
from skdp.mechanisms._stages import Stage, stages_of
from skdp.utils._units import ALL_IN_EACH

# Minimum signal-to-noise ratio n mu at which interactions="auto" chooses tables. Below this ratio,
# the noise in a score hides all but the strongest interactions, while the choice costs a few
# percent of the budget.
MIN_SIGNAL_FOR_CHOICE = 1200.0
# Maximum number of tables that interactions="auto" chooses.
AUTO_TABLES = 5
# Fraction of the tables that are chosen in the first round.
FIRST_ROUND = 0.6
# Fraction of mu squared spent on the choices in each round. With 2 % instead of 4 %, true pairs
# were missed in some fits of a simulated table of hourly counts.
SELECTION_FRACTIONS = (0.04, 0.03)
# Fractions of the remaining budget. A round consists of the steps before it, the mean square of
# residuals for the clip of numeric targets, the mean square for the null level of scores, and the
# confirmation.
EARLY_FRACTIONS = {
    "first_steps": 0.1,
    "first_clip": 0.002,
    "first_scale": 0.002,
    "first_confirmation": 0.018,
    "second_steps": 0.15,
    "second_clip": 0.002,
    "second_scale": 0.002,
    "second_confirmation": 0.018,
}
# With little signal, the confirmation would reject most strong tables, so its fraction is raised to
# this number over n mu, up to the maximum. With 1.8 %, one of two strong pairs of a simulated table
# of hourly counts is missed in half of the fits at n mu = 1,500.
CONFIRMATION_SIGNAL = 54.0
MAX_CONFIRMATION = 0.036
# If the first round chose nothing, there is a second round only below this n mu. Above it, noise
# does not hide strong tables from the first round.
MAX_SIGNAL_TO_CHOOSE_AGAIN = 5_000.0
ROUNDS = ("first", "second")
# A table is confirmed if its score exceeds these numbers of standard deviations of its noise and of
# the residuals. With 2.5 and 1, credit_default received a useless pair in one fit of four.
MIN_DEVIATIONS = 3.0
MIN_RESIDUAL_STDS = 3.0
# Bounds on the released root mean square of residuals, in units of the clip.
MIN_RESIDUAL_SCALE = 0.01
# The clip of numeric targets is set from the root mean square of residuals if n mu is at least this
# number and tables are chosen. On training rows of twenty small tables, setting the clip in this
# way even without tables decreases R² on skewed targets, by .017 on one table.
MIN_SIGNAL_TO_FOLLOW = 500.0
# Residuals are measured with this multiple of the current clip. Measured with the clip itself,
# normally distributed errors would appear smaller by .28 in each round.
MEASURED_CLIPS = 2.0
# If n mu exceeds this number, the clip exceeds the root mean square by the ratio of the two: with
# little noise, a small clip would only shift the model from the mean towards the median. On
# simulated tables of 17,000 rows, R² is .004 to .037 lower with 3,000 at epsilon = 1.
CLIP_GROWTH_SIGNAL = 10_000.0
# If the mean score changes by more than this multiple of the residuals' root mean square while the
# clip is small, targets are skewed, and the clip of the first steps is used again. The change is
# .35 to .8 on a small table with skewed targets, and up to .27 on california_housing and on
# simulated tables, on training rows.
MAX_MEAN_SHIFT = 0.3
# Smallest sensitivity of a score, in units of the clip, for which noise is drawn.
MIN_SENSITIVITY = 2.0**-30
# Number of steps per square root of the condition number in the stages before the last, with the
# squared loss (otherwise it is 2). Early weights need not be converged: the score of a table
# contains no effects of single columns, and the last steps minimize another loss, because their
# clip follows the residuals. With the Poisson loss, R² falls by .02 on one of two small tables with
# skewed targets. See docs/theory/additive_models.md, section 7, for figures.
EARLY_STEPS_PER_ROOT = 1.0
# The same of the last steps after steps with tables, for the squared loss unless targets are
# skewed. A step reduces the error by a factor of about 1 - 1 / root. The last steps start at half
# the weights that the preceding steps reached, which saves log(2) steps per root: 2 - log(2) = 1.3.
WARM_STEPS_PER_ROOT = 1.3
# Fraction of a row's squared norm that single columns receive.
MAIN_FRACTION = 0.7
# Maximum number of candidate columns, taken by released importance, so that the number of pairs
# stays bounded.
MAX_CANDIDATE_COLUMNS = 100


@dataclass(frozen=True, kw_only=True, eq=False)
class InteractionFit(AdditiveFit):
    """A fit that chooses tables. See `AdditiveFit` for the other parameters.

    Parameters
    ----------
    n_chosen : int
        Maximum number of tables.
    """

    n_chosen: int

    def __post_init__(self):
        super().__post_init__()
        if self.budget.is_pure:
            raise ValueError(
                "interactions: choosing pairs needs delta > 0. With delta=0, declare the pairs."
            )
        for number, count in enumerate(self.round_sizes):
            self._confirmation(number, self.task.clip).check_size(count)
            if not self.is_gaussian:
                self._selection(number, self.task.clip)

    @property
    def name(self):
        choice = "scores with Gaussian noise" if self.is_gaussian else "the exponential mechanism"
        return f"{super().name}, tables of columns chosen by {choice}"

    @property
    def main_fraction(self):
        return MAIN_FRACTION

    @property
    def is_gaussian(self):
        """True if candidates are chosen by scores with Gaussian noise."""
        return self.guarantee.prefers_gaussian

    @property
    def round_sizes(self):
        """Maximum number of tables of each round."""
        first = math.ceil(FIRST_ROUND * self.n_chosen)
        return tuple(count for count in (first, self.n_chosen - first) if count)

    @property
    def selections(self):
        """Choices by the exponential mechanism, with the fraction of mu squared of each round."""
        if self.is_gaussian:
            return ()
        return tuple(zip(self.round_sizes, SELECTION_FRACTIONS, strict=False))

    @property
    def _extra_fractions(self):
        """Fractions of the remaining budget for the stages of all rounds.

        A confirmation receives more with little signal; stages that do not run are left out. With
        Gaussian noise the choices are among the stages, because their scores are released with such
        noise.
        """
        rounds = ROUNDS[: len(self.round_sizes)]
        fractions = {
            stage: fraction
            for stage, fraction in EARLY_FRACTIONS.items()
            if stage.partition("_")[0] in rounds
        }
        confirmation = CONFIRMATION_SIGNAL / self.signal_to_noise
        for name in rounds:
            smallest = fractions[f"{name}_confirmation"]
            fractions[f"{name}_confirmation"] = min(max(smallest, confirmation), MAX_CONFIRMATION)
        if not self.follows_residuals:
            fractions = {
                stage: fraction
                for stage, fraction in fractions.items()
                if not stage.endswith("_clip")
            }
        if self.is_gaussian:
            chosen = zip(rounds, SELECTION_FRACTIONS, strict=False)
            fractions |= {f"{name}_choice": fraction for name, fraction in chosen}
        return fractions

    @property
    def _max_joint_cells(self):
        return self.n_chosen * MAX_JOINT_CELLS

    @property
    def _early_stages(self):
        """Stages of all rounds, which run before the last steps, in their order."""
        stages = []
        clip = self.task.clip
        unit_of_squares = ""
        if self.follows_residuals:
            unit_of_squares = "the square of the ratio of the clip to the largest clip"
        steps = ("first steps", "steps with the tables of the first round")
        for number, count in enumerate(self.round_sizes):
            stages.append(self._steps_stage(steps[number], f"{ROUNDS[number]}_steps"))
            if self.follows_residuals:
                bound = self.max_clip**2
                mechanism = self._square_mechanism(f"{ROUNDS[number]}_clip", bound)
                name = "mean square of residuals, for their clip"
                stages.extend(stages_of(mechanism, name, unit_of_squares))
            scale = self._square_mechanism(f"{ROUNDS[number]}_scale", clip**2)
            name = "mean square of residuals, for the scores"
            stages.extend(stages_of(scale, name, unit_of_squares))
            stages.extend(self._choice_stages(number, count))
            confirmation = self._confirmation(number, clip * self._sensitivity_factor)
            # The sensitivity of a score depends on released counts.
            unit = "the released sensitivity of a score, relative to the clip"
            stages.extend(stages_of(confirmation, "scores of the chosen tables", unit))
        return stages

    def _choice_stages(self, number, count):
        """Return the stage for the choices in one round.

        The scale and the sensitivity depend on released counts, but their ratio does not.
        """
        if self.is_gaussian:
            fraction = self.budget_fractions[f"{ROUNDS[number]}_choice"]
            event = Gaussian(self.budget.multiplier / math.sqrt(fraction))
            text = "Gaussian mechanism on the scores of all candidates"
            return [
                Stage(name="choice of tables", law=text, scale=None, sensitivity=None, event=event)
            ]
        event = ExponentialMechanismEvent(self._selection_epsilon(number))
        return [
            Stage(
                name="choice of tables",
                law="Exponential mechanism",
                scale=None,
                sensitivity=None,
                event=event,
                n_releases=count,
                reads=ALL_IN_EACH,
            )
        ]

    def _selection_epsilon(self, number):
        return self.budget.selection_epsilon(*self.selections[number])

    def _selection(self, number, sensitivity):
        """Return the exponential mechanism of one choice."""
        return ExponentialMechanism(self._selection_epsilon(number), sensitivity)

    def _square_mechanism(self, stage, bound):
        """Return the mechanism for a sum of squares that are each at most `bound`.

        Both squares of a replaced row are between 0 and the bound, so the sensitivity is the same
        under both relations.
        """
        return self.budget.mechanism(self.budget_fractions[stage], l1=bound, l2=bound)

    def _confirmation(self, number, sensitivity):
        """Return the mechanism that releases the chosen tables' scores a second time."""
        l2_sensitivity = sensitivity * math.nextafter(math.sqrt(self.round_sizes[number]), math.inf)
        fraction = self.budget_fractions[f"{ROUNDS[number]}_confirmation"]
        return self.budget.mechanism(fraction, l1=l2_sensitivity, l2=l2_sensitivity)

    def _run_steps(self, state, source):
        """Return everything that is released, given the stages of the columns and the baseline.

        A round takes steps, may set the clip of residuals from their mean square, and chooses
        tables. The second round also tries tables of three columns. The last steps fit the chosen
        tables.
        """
        state = self._take_steps(state, "first_steps", source)
        columns = self._candidate_columns(state)
        pairs = [*itertools.combinations(columns, 2)]
        fit, followed = self._follow_residuals(0, state, source)
        tables = fit._choose_tables(0, followed, pairs, source)
        if not tables:
            return self._run_without_tables(state, pairs, source)
        state = followed.with_joint_terms(tables, self.main_fraction)
        if len(self.round_sizes) == 1:
            return fit._last_steps(state, source)
        state = fit._take_steps(state, "second_steps", source)
        fit, state = fit._follow_residuals(1, state, source)
        chosen = [table.indices for table in tables]
        candidates = second_candidates(pairs, chosen, columns)
        tables = fit._choose_tables(1, state, candidates, source)
        steps_per_root = _descent.STEPS_PER_ROOT
        if self.follows_residuals and not self.task.has_log_link:
            if is_skewed(state):
                fit = self
            else:
                steps_per_root = WARM_STEPS_PER_ROOT
        if tables:
            state = state.with_joint_terms(tables, self.main_fraction)
        return fit._last_steps(state, source, steps_per_root=steps_per_root)

    def _run_without_tables(self, state, pairs, source):
        """Return everything that is released if the first round chose nothing.

        With few rows, the second round chooses among the same pairs, because it may find pairs that
        noise hid from the first round. Steps before it would be useless, so their budget goes to
        the last steps. If there are still no tables, the weights of the first and the last steps,
        which have the same clip, are averaged.
        """
        unused = ["second_steps"]
        if self._chooses_again:
            fit, followed = self._follow_residuals(1, state, source)
            tables = fit._choose_tables(1, followed, pairs, source)
            if tables:
                state = followed.with_joint_terms(tables, self.main_fraction)
                fraction = self._last_fraction(unused)
                return fit._last_steps(state, source, budget_fraction=fraction)
        else:
            unused += ["second_clip", "second_scale", "second_choice", "second_confirmation"]
        return self._last_steps(
            state,
            source,
            budget_fraction=self._last_fraction(unused),
            earlier_fraction=self.budget_fractions["first_steps"],
        )

    @property
    def _chooses_again(self):
        """True if there is a second round after a first round that chose nothing."""
        has_second_round = len(self.round_sizes) > 1
        return has_second_round and self.signal_to_noise < MAX_SIGNAL_TO_CHOOSE_AGAIN

    def _last_fraction(self, unused):
        """Return the budget fractions of the last steps and of the stages that did not run.

        A fraction of mu squared may be spent on other Gaussian releases than planned, because the
        sum of the fractions is fixed.
        """
        return math.fsum(self.budget_fractions.get(stage, 0.0) for stage in ["steps", *unused])

    @property
    def follows_residuals(self):
        """True if the clip of later steps is set from the residuals of numeric targets."""
        return self.finds_variance and self.signal_to_noise >= MIN_SIGNAL_TO_FOLLOW

    @property
    def early_steps_per_root(self):
        """Number of steps per root of the condition number, in the stages before the last."""
        if self.follows_residuals and not self.task.has_log_link:
            return EARLY_STEPS_PER_ROOT
        return super().early_steps_per_root

    @property
    def max_clip(self):
        """Largest clip of residuals of numeric targets."""
        return NumberTask.clip * self.task.clip_unit

    def _follow_residuals(self, number, state, source):
        """Return the fit with a clip from the released residuals, and the state for that fit."""
        if not self.follows_residuals:
            return self, state
        measured = self._with_clip(min(MEASURED_CLIPS * self.task.clip, self.max_clip))
        mean_square = measured._residual_square(f"{ROUNDS[number]}_clip", state, source)
        ratio = max(1.0, self.signal_to_noise / CLIP_GROWTH_SIGNAL)
        min_clip = MIN_CLIP * self.task.clip_unit
        clip = min(max(ratio * math.sqrt(mean_square), min_clip), self.max_clip)
        return self._with_clip(clip), replace(state, variance=mean_square)

    def _residual_square(self, stage, state, source):
        """Return the noisy mean square of clipped residuals, at most the square of the clip."""
        bound = self.task.clip**2
        mechanism = self._square_mechanism(stage, bound)
        scores = _descent.Scores.at(state.weights, state.cells, state.design)
        residuals = state.residuals(self.task)
        args = (scores, residuals, bound, self.n_rows)
        total = sum_over(state.cells, _add_squares, np.zeros(1), *args)
        mean_square = mechanism.release(total, random_state=source)[0] / self.n_rows
        noise_std = mechanism.deviation(size=1) / self.n_rows
        return float(np.clip(mean_square, min(noise_std, bound), bound))

    def _candidate_columns(self, state):
        """Return the positions of candidate columns, by released importance."""
        columns = [j for j in range(len(state.terms)) if j not in self.no_interaction]
        if len(columns) <= MAX_CANDIDATE_COLUMNS:
            return columns
        values = state.design.bin_values(state.weights)
        sizes = {}
        for j in columns:
            counts = np.maximum(state.terms[j].counts, 0.0)[:, np.newaxis]
            mean = (counts * values[j]).sum(axis=0) / max(counts.sum(), 1.0)
            sizes[j] = float((counts * (values[j] - mean) ** 2).sum())
        columns.sort(key=sizes.get, reverse=True)
        return sorted(columns[:MAX_CANDIDATE_COLUMNS])

    def _choose_tables(self, number, state, candidates, source):
        """Return the confirmed tables of one round, with the cells that the model uses.

        Parameters
        ----------
        number : int
            Index of the round.
        state : FitState
        candidates : list of tuple of int
            Positions of the columns of each candidate.
        source : RandomSource

        Returns
        -------
        list of Table
        """
        count = min(self.round_sizes[number], len(candidates))
        mean_square = self._residual_square(f"{ROUNDS[number]}_scale", state, source)
        residual_std = max(math.sqrt(mean_square), MIN_RESIDUAL_SCALE * self.task.clip)
        bin_values = state.design.bin_values(state.weights)
        values = [bin_values[j] for j in range(len(state.terms))]
        utilities, sensitivity = self._utilities(state, candidates, values, residual_std)
        chosen = self._select(number, count, utilities, sensitivity, source)
        confirmation = self._confirmation(number, sensitivity)
        noisy = confirmation.release(utilities[chosen], random_state=source)
        noise_std = confirmation.deviation(size=count)
        threshold = MIN_DEVIATIONS * noise_std + MIN_RESIDUAL_STDS * residual_std
        confirmed = [candidates[i] for i in np.array(chosen)[noisy > threshold]]
        return [
            make_table(
                state.terms,
                indices,
                table_cells(len(indices), self.signal_to_noise),
                self.n_rows,
                values,
                is_smooth=self.is_smooth,
            )
            for indices in confirmed
        ]

    def _utilities(self, state, candidates, values, residual_std):
        """Return the score of each candidate beyond its null level, and the scores' sensitivity.

        The null level and the sensitivity are functions of released values. Scores are computed in
        floating point, and the sensitivity includes the rounding errors on both neighboring
        datasets.
        """
        axes = {}
        tables = []
        for indices in candidates:
            n_cells = CHOICE_CELLS[len(indices)]
            tables.append(make_table(state.terms, indices, n_cells, self.n_rows, values, axes=axes))
        step = _descent.residual_grid(self.task.clip, self.n_rows)
        scores = _descent.Scores.at(state.weights, state.cells, state.design)
        sums = table_sums(state.cells, tables, scores, state.residuals(self.task), step)
        utilities = []
        sensitivities = []
        for table, residual_sums in zip(tables, sums, strict=True):
            score = InteractionScore(table.frequencies, self.n_rows)
            null_level = residual_std * math.sqrt(score.null_dof)
            utilities.append(score.value(residual_sums) - null_level)
            rounding = 2.0 * score.rounding
            sensitivities.append(self._sensitivity_factor * score.sensitivity + rounding)
        # If the noisy counts of all columns but one are at most 0, every score is constant.
        sensitivity = max(MIN_SENSITIVITY, *sensitivities)
        return np.array(utilities), self.task.clip * sensitivity

    def _select(self, number, count, utilities, sensitivity, source):
        """Return the indices of `count` candidates of the largest noisy scores, in a round.

        With Gaussian noise, all scores are released at once. The exponential mechanism chooses one
        candidate after another.

        Parameters
        ----------
        number : int
            Index of the round.
        count : int
        utilities : ndarray
            Exact scores of the candidates.
        sensitivity : float
            Sensitivity of a score.
        source : RandomSource
        """
        if self.is_gaussian:
            l2_sensitivity = sensitivity * math.nextafter(math.sqrt(len(utilities)), math.inf)
            fraction = self.budget_fractions[f"{ROUNDS[number]}_choice"]
            mechanism = self.budget.mechanism(fraction, l1=l2_sensitivity, l2=l2_sensitivity)
            noisy = mechanism.release(utilities, random_state=source)
            return np.argsort(-noisy, kind="stable")[:count].tolist()
        mechanism = self._selection(number, sensitivity)
        remaining = utilities.copy()
        chosen = []
        for _ in range(count):
            chosen.append(mechanism.release(remaining, random_state=source))
            remaining[chosen[-1]] = -np.inf
        return chosen


def is_choice_useful(fit):
    """Return True if a choice of tables is worth its cost, according to public values.

    Parameters
    ----------
    fit : AdditiveFit
        The same fit without tables.
    """
    return not fit.budget.is_pure and fit.signal_to_noise >= MIN_SIGNAL_FOR_CHOICE


def is_skewed(state):
    """Return True if a small clip shifted the mean score from the mean of targets to their median.

    Only released values are used: counts, weights and the mean square of residuals.
    """
    bin_values = state.design.bin_values(state.weights)
    mean = bin_values[-1][0, 0]
    for index, term in enumerate(state.fitted_terms):
        counts = np.maximum(np.ravel(term.counts), 0.0)
        mean += float(counts @ bin_values[index][:, 0]) / max(counts.sum(), 1.0)
    return bool(abs(mean) > MAX_MEAN_SHIFT * math.sqrt(state.variance))


def second_candidates(pairs, chosen, columns):
    """Return the pairs that were not chosen, and each chosen pair with one more column."""
    triples = {tuple(sorted((*pair, j))) for pair in chosen for j in columns if j not in pair}
    return [*(pair for pair in pairs if pair not in chosen), *sorted(triples)]


def _add_squares(total, block, scores, residuals, bound, n_rows):
    """Add the squared norms of clipped residuals, each at most `bound`, exactly."""
    squares = np.sum(residuals(scores(block), block.targets) ** 2, axis=1, keepdims=True)
    total += exact_sum(squares, (0.0, bound), n_samples=n_rows, row_weights=block.row_weights)
