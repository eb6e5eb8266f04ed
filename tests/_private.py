"""The private names that tests outside their own room use.

A test imports private modules of the room that it stands among alone (`tests/test_house.py`); what
it needs of another one is here, so that a move inside the house changes one file of the tests.
"""

from skdp._data._bounded import BoundedRows, max_bounded_additions
from skdp._data._chunked import as_chunked
from skdp._data._classes import check_classes
from skdp._data._columns import ColumnTable, read_columns, read_numeric_columns
from skdp._data._dask import Run
from skdp._data._dyadic import CELLS as DYADIC_CELLS
from skdp._data._frames import column_values, in_memory, take_rows
from skdp._data._kinds import read_kinds
from skdp._data._labels import category_codes, id_codes
from skdp._data._parts import Rows, is_sent, max_additions, read_block, sum_over
from skdp._data._persons import read_persons
from skdp._data._row_wise import row_norms
from skdp._data._sources import Decoded
from skdp._data._sources import matrix_of_columns as array_of_columns
from skdp._data._symmetric import pack_symmetric
from skdp._data._tables import RowsAndTarget, read_numeric_target, read_target
from skdp._fitting._findings import NO_BOUNDS, collect_findings
from skdp._fitting._fit_progress import FitProgress
from skdp._loops import get_loops
from skdp._loops.choice import has_numba
from skdp._loops.numpy_loops import one_hot_csr
from skdp._optim._classification_losses import (
    BinaryHuberizedHingeLoss,
    BinaryLogisticLoss,
    ClassWeightedLoss,
    ModifiedHuberLoss,
    MulticlassHuberizedHingeLoss,
    MultinomialLogisticLoss,
    OneVersusRestLoss,
    SquaredHingeLoss,
)
from skdp._optim._clipped_sums import ClippedSums, sum_rounding
from skdp._optim._gradient_noise import GaussianNoise, LaplaceNoise
from skdp._optim._linear_objective import LinearObjective, loss_gradient, summed_hessian
from skdp._optim._newton import _accelerated_descent, minimize
from skdp._optim._noisy_gradients import ShrinkageRule
from skdp._optim._regression_losses import ClippedPoissonLoss, HuberLoss
from skdp._optim._sgd_plan import plan_sgd
from skdp._reports._line import privacy_line
from skdp._tools._entries import REASONS, KnownStep
from skdp._tools._registry import KNOWN_STEPS, TOOLS, UNKNOWN, find_class
from skdp.accounting._events import leaves
from skdp.cluster._kmeans import Cells
from skdp.display._additive import BAND_WIDTH
from skdp.gam._blocks import joint_design, main_design
from skdp.gam._descent import PerturbedObjective, residual_grid, residual_sums
from skdp.gam._plan import FitState, beyond_noise
from skdp.gam._poisson_task import PoissonTask
from skdp.gam._shapes import edge_names
from skdp.gam._tables import append_joint_terms
from skdp.gam._tasks import BinaryTask, MultinomialTask, NumberTask, Residuals
from skdp.ledger._report import describe_part
from skdp.linear_model._output_perturbation import plan_output_perturbation
from skdp.linear_model._planning import gradient_rounding
from skdp.mechanisms._plan import noise_of_cell_weights, plan_release
from skdp.pipeline._known import find_raw_steps
from skdp.stats import _second_moment
from skdp.stats._bounds import BoundsSearch, _add_bins, spaced_bins
from skdp.stats._categories import _value_counts
from skdp.stats._column_cells import (
    Term,
    cell_reader,
    cells_of,
    declared_columns,
    exact_counts,
    finest_edges,
)
from skdp.stats._column_plan import BOUNDS_FRACTION, Budget, GaussianThreshold
from skdp.stats._moments import _centered_sums
from skdp.stats._quantiles import QuantileTree, plan_quantiles
from skdp.stats._ranks import CELLS
from skdp.stats._refinement import REFINEMENT_FRACTION
from skdp.stats._second_moment import MEAN_WEIGHT, SecondMoment, second_moment_sensitivity
from skdp.testing._case import Case, make_table
from skdp.tree._decision_tree import TreeFit, best_split, grow_tree
from skdp.utils._rounding import format_rounded_up
from skdp.utils._validation import check_choice, is_auto, public_inputs

__all__ = [
    "BAND_WIDTH",
    "BOUNDS_FRACTION",
    "CELLS",
    "DYADIC_CELLS",
    "KNOWN_STEPS",
    "MEAN_WEIGHT",
    "NO_BOUNDS",
    "REASONS",
    "REFINEMENT_FRACTION",
    "TOOLS",
    "UNKNOWN",
    "BinaryHuberizedHingeLoss",
    "BinaryLogisticLoss",
    "BinaryTask",
    "BoundedRows",
    "BoundsSearch",
    "Budget",
    "Case",
    "Cells",
    "ClassWeightedLoss",
    "ClippedPoissonLoss",
    "ClippedSums",
    "ColumnTable",
    "Decoded",
    "FitProgress",
    "FitState",
    "GaussianNoise",
    "GaussianThreshold",
    "HuberLoss",
    "KnownStep",
    "LaplaceNoise",
    "LinearObjective",
    "ModifiedHuberLoss",
    "MulticlassHuberizedHingeLoss",
    "MultinomialLogisticLoss",
    "MultinomialTask",
    "NumberTask",
    "OneVersusRestLoss",
    "PerturbedObjective",
    "PoissonTask",
    "QuantileTree",
    "Residuals",
    "Rows",
    "RowsAndTarget",
    "Run",
    "SecondMoment",
    "ShrinkageRule",
    "SquaredHingeLoss",
    "Term",
    "TreeFit",
    "_accelerated_descent",
    "_add_bins",
    "_centered_sums",
    "_second_moment",
    "_value_counts",
    "append_joint_terms",
    "array_of_columns",
    "as_chunked",
    "best_split",
    "beyond_noise",
    "category_codes",
    "cell_reader",
    "cells_of",
    "check_choice",
    "check_classes",
    "collect_findings",
    "column_values",
    "declared_columns",
    "describe_part",
    "edge_names",
    "exact_counts",
    "find_class",
    "find_raw_steps",
    "finest_edges",
    "format_rounded_up",
    "get_loops",
    "gradient_rounding",
    "grow_tree",
    "has_numba",
    "id_codes",
    "in_memory",
    "is_auto",
    "is_sent",
    "joint_design",
    "leaves",
    "loss_gradient",
    "main_design",
    "make_table",
    "max_additions",
    "max_bounded_additions",
    "minimize",
    "noise_of_cell_weights",
    "one_hot_csr",
    "pack_symmetric",
    "plan_output_perturbation",
    "plan_quantiles",
    "plan_release",
    "plan_sgd",
    "privacy_line",
    "public_inputs",
    "read_block",
    "read_columns",
    "read_kinds",
    "read_numeric_columns",
    "read_numeric_target",
    "read_persons",
    "read_target",
    "residual_grid",
    "residual_sums",
    "row_norms",
    "second_moment_sensitivity",
    "spaced_bins",
    "sum_over",
    "sum_rounding",
    "summed_hessian",
    "take_rows",
]
