"""Imputation with differential privacy."""

from skdp.impute._simple_imputer import DPSimpleImputer

__all__ = ["DPSimpleImputer"]
