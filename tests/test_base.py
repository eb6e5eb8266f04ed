"""What every private fit has from `private_fit`."""

from inspect import Parameter, getsource, signature

import numpy as np
import pytest
from numpydoc.docscrape import FunctionDoc
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp.base import private_fit
from skdp.testing import dp_checks
from tests._estimators import ESTIMATORS


@pytest.mark.quick_cases(one_per=lambda estimator: type(estimator))
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_values_are_checked_whatever_the_setting(estimator):
    check = next(check for check in dp_checks() if check.__name__ == "check_failed_fit")
    with config_context(assume_finite=True):
        check(estimator)


class Transformer(BaseEstimator):
    accountant = random_state = None


class Classifier(ClassifierMixin, Transformer):
    """A kind of estimator that scikit-learn gives labels."""


def test_targets_that_are_required_are_not_forgotten():
    with private_fit(Classifier()) as fit, pytest.raises(ValueError, match="requires y"):
        fit.read(np.ones((3, 2)), None)
    with private_fit(Transformer()) as fit:
        table = fit.read(np.ones((3, 2)))
        assert table.X.shape == (3, 2) and table.y is None
        assert (table.shape.n_rows, table.shape.n_columns) == (3, 2)
    with private_fit(Classifier()) as fit:
        assert fit.read(np.ones((3, 2)), [0, 1, 0]).y.tolist() == [0, 1, 0]


@pytest.mark.parametrize("kind", {type(e): e for e in ESTIMATORS}, ids=lambda kind: kind.__name__)
def test_parameters_that_all_estimators_have_stand_first_and_last(kind):
    if "estimator" in signature(kind).parameters:
        pytest.skip("a search: what it searches stands first")
    first, *others = signature(kind).parameters.values()
    assert first.name == "epsilon" and first.kind is Parameter.POSITIONAL_OR_KEYWORD
    assert {p.kind for p in others} == {Parameter.KEYWORD_ONLY}
    last = [p.name for p in others if p.name != "verbose"][-2:]
    assert last == ["accountant", "random_state"]


@pytest.mark.parametrize("kind", {type(e): e for e in ESTIMATORS}, ids=lambda kind: kind.__name__)
def test_constructors_are_written_out_with_annotations_and_documented(kind):
    """Editors, type checkers and `inspect` show the parameters of an estimator's own file."""
    assert "__init__" in vars(kind) and "__init__" in getsource(kind)
    assert "{" not in getsource(kind.__init__).partition("):")[0]
    parameters = list(signature(kind.__init__).parameters.values())[1:]
    assert [p.name for p in parameters if p.annotation is Parameter.empty] == []
    documented = [entry.name for entry in FunctionDoc(kind)["Parameters"]]
    assert documented == [p.name for p in parameters]
