import pytest

import skdp
import skdp.utils


def test_tools_for_tables_are_found_in_utils():
    assert skdp.utils.ChunkedArray is skdp.ChunkedArray
    assert skdp.utils.limit_rows is skdp.limit_rows
    assert skdp.utils.exact_sum is skdp.base.exact_sum
    assert {"ChunkedArray", "UnitText", "sum_grid"} <= set(dir(skdp.utils))
    with pytest.raises(AttributeError, match="has no attribute 'exact_summ'"):
        skdp.utils.exact_summ  # noqa: B018
