"""Guarantees in one line, for plans that tests make themselves."""

from skdp.accounting import Guarantee, Neighbours
from skdp.linear_model._planning import Problem


def meet(epsilon, delta=0.0, relation="add_remove"):
    return Guarantee(epsilon=epsilon, delta=delta, neighbours=Neighbours(relation=relation))


def of_rows(loss, n_rows, n_features, norm):
    return Problem(loss=loss, n_rows=n_rows, n_features=n_features, norm=norm)
