"""Guarantees in one line, for plans that tests make themselves."""

from dataclasses import replace

from skdp._optim._default_settings import LossSpec
from skdp.accounting import Guarantee, Neighbors
from skdp.base import TableShape
from skdp.linear_model._classifier import logistic_loss_spec
from skdp.linear_model._data_norm import RowsFit
from skdp.linear_model._mechanism_choice import choose_mechanism
from skdp.linear_model._planning import PerturbationProblem


def meet(epsilon, delta=0.0, relation="add_remove", unit="row"):
    neighbors = Neighbors(relation=relation, unit=unit)
    return Guarantee(epsilon=epsilon, delta=delta, neighbors=neighbors)


def of_rows(loss, n_rows, n_columns, norm, guarantee=None, constant=0.0):
    loss_spec = LossSpec(loss, residual_norm=1.0, curvature=1.0, weights_norm=1.0)
    sizes = {"n_rows": n_rows, "n_columns": n_columns, "norm": norm, "constant": constant}
    return PerturbationProblem(loss_spec=loss_spec, guarantee=guarantee or meet(1.0), **sizes)


def plan_weights(mechanism, problem, C, guarantee, **of_task):
    """Return the plan of logistic regression's weights, without an intercept."""
    rows = RowsFit(
        norm_search=None,
        data_norm=problem.norm,
        constant=0.0,
        fit_guarantee=guarantee,
        remaining=guarantee,
    )
    shape = TableShape(n_rows=problem.n_rows, n_columns=problem.n_features)
    loss_spec = logistic_loss_spec([1.0] * max(2, *problem.loss.weights_shape, 2))
    loss_spec = replace(
        loss_spec, loss=problem.loss, residual_norm=problem.loss.loss_lipschitz, **of_task
    )
    return choose_mechanism(mechanism, C, rows, shape, loss_spec).plan()
