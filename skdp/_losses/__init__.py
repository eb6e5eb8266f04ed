"""Losses of linear models as functions of scores, with the bounds that privacy needs."""
