"""Losses of linear models as functions of scores, with the bounds that noise depends on."""
