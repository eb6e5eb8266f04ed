"""What searches of other libraries charge is known of some classes alone."""

import numpy as np
from sklearn.model_selection import KFold

from skdp import DPLogisticRegression
from skdp._fitting._search_prices import price_of_search


def test_a_class_of_another_library_with_the_name_of_a_search_has_no_price():
    """It has other parameters than scikit-learn's."""
    other = type("RFECV", (), {"estimator": DPLogisticRegression(), "cv": KFold(3)})()
    assert price_of_search(other, np.zeros((9, 2))) is None
