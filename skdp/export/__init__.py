"""Plain scikit-learn models of what was released, to be served without skdp."""

from skdp.export._sklearn import to_sklearn

__all__ = ["to_sklearn"]
