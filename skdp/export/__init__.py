"""Released models as plain scikit-learn's, for servers and converters that know no skdp."""

from skdp.export._to_sklearn import to_sklearn

__all__ = ["to_sklearn"]
