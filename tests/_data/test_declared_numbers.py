"""Declared numbers against columns of other types: matched, or refused before the charge."""

import datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import skdp
from skdp import DPOneHotEncoder, PrivacyAccountant

N_ROWS = 60
CODES = np.random.default_rng(0).integers(0, 3, N_ROWS)
TENTHS = [Decimal("0.1"), Decimal("0.2"), Decimal("0.3")]
HALVES = [Decimal("0.5"), Decimal("1.5"), Decimal("2.5")]

# The same three values as cells or as declared categories of many types.
VALUES = {
    "tenths": {
        "float": [0.1, 0.2, 0.3],
        "numpy float": [np.float64(0.1), np.float64(0.2), np.float64(0.3)],
        "Decimal": TENTHS,
        "scaled Decimal": [Decimal("0.100"), Decimal("0.200"), Decimal("0.300")],
        "Fraction": [Fraction(1, 10), Fraction(1, 5), Fraction(3, 10)],
        "mixed": [0.1, Decimal("0.2"), Fraction(3, 10)],
    },
    "halves": {
        "float": [0.5, 1.5, 2.5],
        "float32": [np.float32(0.5), np.float32(1.5), np.float32(2.5)],
        "Decimal": HALVES,
        "Fraction": [Fraction(1, 2), Fraction(3, 2), Fraction(5, 2)],
    },
    "whole numbers": {
        "int": [0, 1, 2],
        "int8": [np.int8(0), np.int8(1), np.int8(2)],
        "float": [0.0, 1.0, 2.0],
        "Decimal": [Decimal(0), Decimal("1.0"), Decimal(2)],
        "Fraction": [Fraction(0), Fraction(1), Fraction(2)],
        "boolean": [False, True, 2],
        "complex": [0j, 1 + 0j, 2 + 0j],
    },
    "large numbers": {
        "int": [2**60, 2**60 + 1, 2**60 + 2],
        "Decimal": [Decimal(2**60), Decimal(2**60 + 1), Decimal(2**60 + 2)],
    },
}
# Types of columns that hold the values of a kind as they are.
TYPES = {
    "tenths": ["float64", "Float64", pa.float64(), pa.decimal128(20, 1), pa.decimal256(40, 4)],
    "halves": ["float32", "float16", "Float32", pa.float32(), pa.float16(), pa.decimal128(20, 2)],
    "whole numbers": ["int64", "int8", "uint16", "Int64", "UInt8", "float32", pa.int32()],
    "large numbers": ["int64", "uint64", "Int64", "UInt64", pa.int64()],
}
POLARS = {
    "tenths": [pl.Float64, pl.Decimal(20, 1), pl.Decimal(20, 4)],
    "halves": [pl.Float32, pl.Decimal(20, 2)],
    "whole numbers": [pl.Int64, pl.Int8, pl.UInt16, pl.Float32],
    "large numbers": [pl.Int64, pl.UInt64],
}
OTHERS = {
    "text": ["0.1", "0.5", "1"],
    "bytes": [b"0", b"1", b"2"],
    "dates": [datetime.date(2024, 3, day) for day in (1, 2, 3)],
}


def containers(kind, with_gap):
    """Return tables of one column of the values of a kind, in every container and type."""
    cells = {name: [own[k] for k in CODES] for name, own in VALUES[kind].items()}
    plain = next(iter(cells.values()))
    if with_gap:
        plain = [None, *plain[1:]]
        cells = {name: [None, *own[1:]] for name, own in cells.items()}
    tables = {}
    for name, own in cells.items():
        array = np.empty((N_ROWS, 1), dtype=object)
        array[:, 0] = own
        tables[f"objects of {name}"] = array
        tables[f"frame of {name}"] = pd.DataFrame(array, columns=["x"], dtype=object)
        tables[f"categorical of {name}"] = pd.DataFrame({"x": pd.Categorical(own)})
    for dtype in TYPES[kind]:
        if isinstance(dtype, str):
            is_nullable = dtype[0].isupper()
            if with_gap and not is_nullable and "float" not in dtype:
                continue
            column = pd.Series(plain, dtype=dtype)
            tables[f"pandas {dtype}"] = pd.DataFrame({"x": column})
            if not (is_nullable or with_gap):
                tables[f"array of {dtype}"] = column.to_numpy()[:, None]
            continue
        # Only decimals become decimals without rounding.
        own = cells["Decimal"] if pa.types.is_decimal(dtype) else plain
        if pa.types.is_float16(dtype):
            own = [None if x is None else np.float16(x) for x in own]
        tables[f"arrow {dtype}"] = pa.table({"x": pa.array(own, dtype)})
        if not pa.types.is_float16(dtype):
            tables[f"pandas {dtype}"] = pd.DataFrame(
                {"x": pd.Series(own, dtype=pd.ArrowDtype(dtype))}
            )
    for dtype in POLARS[kind]:
        own = cells["Decimal"] if dtype.is_decimal() else plain
        tables[f"polars {dtype}"] = pl.DataFrame({"x": pl.Series(own, dtype=dtype)})
    return tables


def encoded(table, categories):
    """Return how many rows have each category by the encoding."""
    encoder = DPOneHotEncoder(1.0, categories=[categories], sparse_output=False)
    return np.asarray(encoder.fit_transform(table)).sum(axis=0)


@pytest.mark.quick_cases(every=8)
@pytest.mark.parametrize("with_gap", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_equal_numbers_are_matched_in_every_type(kind, with_gap):
    counts = np.bincount(CODES[with_gap:], minlength=3)
    for form, table in containers(kind, with_gap).items():
        for declared, categories in VALUES[kind].items():
            if declared == "complex":
                # Cells may be complex numbers without an imaginary part, but categories may not.
                continue
            found = encoded(table, categories)
            assert found.tolist() == counts.tolist(), (form, declared)


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("other", OTHERS)
def test_numbers_are_not_compared_with_other_kinds(kind, other):
    """Neither a list of another kind nor one in which one category is of another kind."""
    own = next(iter(VALUES[kind].values()))
    for form, table in containers(kind, False).items():
        accountant = PrivacyAccountant(10.0, 0.1)
        lists = [OTHERS[other]]
        if not form.startswith(("objects", "frame of", "categorical")):
            # Columns of objects may hold values of several kinds.
            lists.append([*own[:2], OTHERS[other][2]])
        for categories in lists:
            encoder = DPOneHotEncoder(
                1.0, delta=1e-6, categories=[categories], min_frequency=5, accountant=accountant
            )
            with pytest.raises(ValueError, match="categor"):
                encoder.fit(table)
        assert not accountant.charges, form


ESTIMATORS = {
    "DPOneHotEncoder": {},
    "DPTargetEncoder": {},
    "DPSimpleImputer": {"strategy": "most_frequent"},
    "DPHistogramTransformer": {},
    "DPTableVectorizer": {},
    "DPAdditiveClassifier": {},
    "DPHistogramNB": {},
    "DPRandomForestClassifier": {"n_estimators": 2},
}
NEVER = {
    "text among numbers": (pd.DataFrame({"x": CODES}), [0, "1", 2]),
    "numbers among text": (pd.DataFrame({"x": CODES.astype(str)}, dtype="string"), ["0", 1, "2"]),
    "text among gaps": (pd.DataFrame({"x": pd.array(CODES, dtype="Int64")}), [0, "1", 2]),
    "polars": (pl.DataFrame({"x": CODES}), [0, "1", 2]),
    "arrow": (pa.table({"x": CODES.astype(str)}), ["0", "1", 2]),
    "array": (CODES[:, None].astype(float), [0, "1", 2]),
    "a half among whole numbers": (pd.DataFrame({"x": CODES}), [0.5, 1, 2]),
    "a decimal among whole numbers": (pl.DataFrame({"x": CODES}), [Decimal("0.5"), 1, 2]),
}


@pytest.mark.quick_cases(cover="values")
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("case", NEVER)
def test_a_category_that_no_value_can_equal_costs_nothing(name, case):
    table, categories = NEVER[case]
    accountant = PrivacyAccountant(10.0, 0.1)
    model = getattr(skdp, name)(
        1.0, delta=1e-6, categories=[categories], accountant=accountant, **ESTIMATORS[name]
    )
    with pytest.raises(ValueError, match="never equal"):
        model.fit(table, CODES == 1)
    assert not accountant.charges


def test_the_category_of_other_values_may_be_of_another_kind():
    for table in (pd.DataFrame({"x": CODES}), CODES[:, None]):
        model = skdp.DPHistogramTransformer(
            1.0, categories=[[0, 1, "others"]], other="others", encode="onehot"
        )
        assert np.asarray(model.fit(table).transform(table)[:, 2]).any()


def test_decimals_are_found_as_the_numbers_that_they_are():
    """The same table of decimals and of floats gives the same categories."""
    codes = np.random.default_rng(0).integers(0, 3, 2000)
    tables = [
        pd.DataFrame({"x": np.array([0.1, 0.2, 0.3])[codes]}),
        pd.DataFrame({"x": np.array(TENTHS, dtype=object)[codes]}),
        pl.DataFrame({"x": pl.Series([TENTHS[k] for k in codes], dtype=pl.Decimal(10, 2))}),
    ]
    for table in tables:
        encoder = DPOneHotEncoder(5.0, delta=1e-6).fit(table)
        assert encoder.categories_[0].tolist() == [0.1, 0.2, 0.3]
