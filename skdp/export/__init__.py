"""Export of fitted estimators to scikit-learn, to be served without skdp."""

from skdp.export._sklearn import to_sklearn

__all__ = ["to_sklearn"]
