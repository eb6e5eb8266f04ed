"""Imputation with differential privacy."""

from skdp.impute._simple_imputer import DPSimpleImputer as DPSimpleImputer
