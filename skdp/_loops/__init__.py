"""Inner loops over rows, each in a NumPy version and a version that numba compiles.

`numpy_loops` and `numba_loops` define the same functions with the same parameters. There is one
exception: the NumPy version of the loops over batches of DP-SGD is the code in `skdp._optim`, which
reads the rows of every container. A fit chooses
one of them once, from public numbers (`choose_loops`), and sends the choice with its tasks, so that
all rows, blocks and workers of a fit use the same version. `get_loops` returns the module.

A loop is either *exact* or *rounded*. An exact loop gathers values, adds them in a fixed order, or
adds multiples of a grid whose sums are exact: both versions return the same bits. A rounded loop
adds products of floats, and its versions differ by at most the rounding bound that a release's
noise accounts for. Each loop's docstring says which type it is.

Loops contain only additions, multiplications, divisions, comparisons and truncations. Elementary
functions (`exp`, `log`, `expit`) are computed by NumPy and SciPy outside the loops, because the
last bits of a compiled function may differ from theirs.
"""

from skdp._loops.choice import NUMBA, NUMPY, choose_loops, get_loops

__all__ = ["NUMBA", "NUMPY", "choose_loops", "get_loops"]
