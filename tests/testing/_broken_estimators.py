"""Small private estimators that keep the contract, and others that break it in one way each."""

import secrets
import warnings
from array import array
from collections import deque
from dataclasses import replace
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp import DPMaxAbsScaler
from skdp.accounting import PureDP
from skdp.base import (
    PrivateEstimator,
    PrivateFit,
    TableShape,
    plans_for_groups,
    private_fit,
    private_fit_method,
    read_array,
    relation_of,
    row_wise_answer,
)
from skdp.mechanisms import GaussianMechanism, GeometricMechanism, LaplaceMechanism
from tests._private import plan_quantiles, plan_release


class PrivateMean(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Noisy means of features within [-1, 1], which `transform` subtracts."""

    def __init__(self, epsilon=1.0, *, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y=None):
        with PrivateFit(self) as fit:
            X = self._validate(X)
            mechanism = self._mechanism(X.shape[1])
            source = fit.charge(mechanism, size=X.shape[1])
            total = self._total(X, mechanism, source)
            fit.publish(mechanism, public=self._public(), **self._released(X, total / len(X)))
        return self

    def _validate(self, X):
        return validate_data(self, X, dtype=np.float64)

    def _mechanism(self, n_features):
        moved = 1.0 if relation_of(self.accountant) == "add_remove" else 2.0
        return LaplaceMechanism(self.epsilon, moved * n_features)

    def _total(self, X, mechanism, source):
        return mechanism.release(np.clip(X, -1.0, 1.0).sum(axis=0), random_state=source)

    def _released(self, X, mean):
        return {"mean_": mean}

    def _public(self):
        return ("the numbers of rows and columns",)

    def transform(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, reset=False) - self.mean_

    def __sklearn_is_fitted__(self):
        return hasattr(self, "mean_")


class PlainMean(PrivateMean):
    """The same without `PrivateFit`, a statement and seeds."""

    def __init__(self, epsilon=1.0, *, accountant=None):
        self.epsilon = epsilon
        self.accountant = accountant

    def fit(self, X, y=None):
        self._forget()
        try:
            X = self._validate(X)
            mechanism = self._mechanism(X.shape[1])
            mechanism.check_size(X.shape[1])
            if self.accountant is not None:
                self._charge()
        except Exception:
            self._forget()
            raise
        self.mean_ = mechanism.release(np.clip(X, -1.0, 1.0).sum(axis=0)) / len(X)
        return self

    def _charge(self):
        self.accountant.charge(PureDP(self.epsilon), epsilon=self.epsilon)

    def _forget(self):
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)


class PrivateCount(PrivateMean):
    """The number of rows whose first value is positive, by the geometric mechanism."""

    def fit(self, X, y=None):
        with PrivateFit(self) as fit:
            X = self._validate(X)
            moved = 1 if relation_of(self.accountant) == "add_remove" else 2
            mechanism = GeometricMechanism(self.epsilon, moved)
            source = fit.charge(mechanism, size=1)
            count = np.array([np.sum(X[:, 0] > 0.0)])
            count = mechanism.release(count, random_state=source)
            fit.publish(mechanism, public=self._public(), mean_=count)
        return self


class PrivateUpperQuantile(PrivateMean):
    """The quantile 0.95 of features within [-1, 1], whose rank a replaced row moves by 1, not 2."""

    def fit(self, X, y=None):
        with PrivateFit(self) as fit:
            X = self._validate(X)
            ends = np.ones(X.shape[1])
            shape = TableShape(n_rows=None, n_columns=X.shape[1])
            plan = plan_quantiles(shape, fit.guarantee, quantiles=[0.95])
            upper = plan.run(X, fit.charge(plan), low=-ends, high=ends)[0]
            fit.publish(plan, public=self._public(), mean_=upper)
        return self


class PrivateCentroids(ClassifierMixin, BaseEstimator):
    """Noisy sums of the rows of each class; the class of the nearest direction is predicted."""

    def __init__(self, epsilon=1.0, *, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y):
        with PrivateFit(self) as fit:
            X, y = validate_data(self, X, y, dtype=np.float64)
            check_classification_targets(y)
            classes, codes = np.unique(y, return_inverse=True)
            if len(classes) < 2:
                raise ValueError("one class only")
            moved = 1.0 if relation_of(self.accountant) == "add_remove" else 2.0
            mechanism = LaplaceMechanism(self.epsilon, moved * X.shape[1])
            source = fit.charge(mechanism, size=len(classes) * X.shape[1])
            sums = np.zeros((len(classes), X.shape[1]))
            np.add.at(sums, codes, np.clip(X, -1.0, 1.0))
            sums = self._noisy(sums, mechanism, source)
            fit.publish(mechanism, public=("the labels",), classes_=classes, coef_=sums)
        return self

    def _noisy(self, sums, mechanism, source):
        return mechanism.release(sums, random_state=source)

    def predict(self, X):
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self.classes_[np.argmax(X @ self.coef_.T, axis=1)]

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class LateMean(PrivateMean):
    """Charges after the release, and goes on when the charge is refused."""

    def fit(self, X, y=None):
        accountant, self.accountant = self.accountant, None
        super().fit(X)
        self.accountant = accountant
        if accountant is not None:
            accountant.charge(PureDP(self.epsilon), epsilon=self.epsilon)
        return self


class PeekingMean(PrivateMean):
    """Scales by the largest value, which it looks up before the charge."""

    def _validate(self, X):
        X = super()._validate(X)
        self._largest = np.abs(X).max()
        return X

    def _total(self, X, mechanism, source):
        return super()._total(X, mechanism, source) / self._largest


class ForgetfulMean(PrivateMean):
    """Leaves its accountant behind when it is pickled or copied."""

    def __getstate__(self):
        return super().__getstate__() | {"accountant": None}


class CheapMean(PlainMean):
    """Charges half of its price."""

    def fit(self, X, y=None):
        full, self.epsilon = self.epsilon, self.epsilon / 2.0
        super().fit(X)
        self.epsilon = full
        return self


class UnderstatedMean(PlainMean):
    """Books an event of half of the price that it states and of the noise that it draws."""

    def _charge(self):
        self.accountant.charge(PureDP(self.epsilon / 2.0), epsilon=self.epsilon)


class MeanWithDelta(PrivateMean):
    """May spend delta, but draws Laplace noise, which needs none."""

    def __init__(self, epsilon=1.0, *, delta=1e-6, accountant=None, random_state=None):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.delta = delta


class OverstatedDeltaMean(MeanWithDelta):
    """States the delta that it may spend, and charges none."""

    def fit(self, X, y=None):
        super().fit(X)
        self.privacy_ = replace(self.privacy_, delta=self.delta)
        return self


class FreeDeltaMean(MeanWithDelta):
    """Draws Gaussian noise, which needs delta, and is charged for Laplace noise."""

    def _total(self, X, mechanism, source):
        sensitivity = np.sqrt(mechanism.sensitivity * X.shape[1])
        gaussian = GaussianMechanism(self.epsilon, self.delta, sensitivity)
        return super()._total(X, gaussian, source)


class SpendthriftMean(MeanWithDelta):
    """Spends more delta than it may."""

    def _mechanism(self, n_features):
        spent = 2.0 * self.delta
        sensitivity = super()._mechanism(n_features).sensitivity
        return GaussianMechanism(self.epsilon, spent, sensitivity)


class HoardedNoiseMean(PrivateMean):
    """Keeps one generator for all fits, and takes it along to workers."""

    def _total(self, X, mechanism, source):
        if not hasattr(self, "_random"):
            self._random = np.random.default_rng(secrets.randbits(64))
        noise = self._random.laplace(scale=mechanism.scale, size=X.shape[1])
        return np.clip(X, -1.0, 1.0).sum(axis=0) + noise


class TwiceMean(PrivateMean):
    """Releases twice for the price of once."""

    def _total(self, X, mechanism, source):
        again = self._mechanism(X.shape[1])
        self._square = again.release((X**2).sum(axis=0), random_state=source)
        return super()._total(X, mechanism, source)

    def _released(self, X, mean):
        return {"mean_": mean, "mean_square_": self.__dict__.pop("_square") / len(X)}


class HastyMean(PrivateMean):
    """Charges before it validates."""

    def fit(self, X, y=None):
        with PrivateFit(self) as fit:
            mechanism = self._mechanism(np.shape(X)[1])
            source = fit.charge(mechanism, size=np.shape(X)[1])
            X = self._validate(X)
            total = self._total(X, mechanism, source)
            fit.publish(mechanism, public=self._public(), mean_=total / len(X))
        return self


class CarelessMean(PrivateMean):
    """Takes a negative epsilon for its absolute value."""

    def _mechanism(self, n_features):
        return LaplaceMechanism(abs(self.epsilon), n_features)


class OverflowingMean(PrivateMean):
    """Divides by a power of epsilon, which underflows."""

    def _released(self, X, mean):
        with np.errstate(divide="ignore"):
            return {"mean_": mean, "weight_": np.float64(1.0) / self.epsilon**60}


class HoardingMean(PrivateMean):
    """Keeps a copy of the table."""

    def _released(self, X, mean):
        self._rows = X.copy()
        return {"mean_": mean}


class RawMean(PrivateMean):
    """Keeps a statistic without noise, in an object within."""

    def _released(self, X, mean):
        self._state = {"totals": [float(np.sum(X > 0.0))]}
        return {"mean_": mean}


class Slot:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value


HIDING_PLACES = {
    "text": lambda total: f"the total is {total}",
    "bytes": lambda total: np.float32(total).tobytes(),
    "array of text": lambda total: np.array([str(total)]),
    "set": lambda total: {total},
    "slot": Slot,
    "partial": lambda total: partial(max, total),
    "closure": lambda total: lambda: total,
    "default": lambda total: lambda value=total: value,
    "deque": lambda total: deque([total]),
    "memory": lambda total: array("d", [total]),
}


class HidingMean(PrivateMean):
    """Keeps a statistic without noise where numbers are not looked for first."""

    def __init__(self, epsilon=1.0, *, place="text", accountant=None, random_state=None):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.place = place

    def _released(self, X, mean):
        self._state = HIDING_PLACES[self.place](float(X.sum()))
        return {"mean_": mean}


class RepeatingMean(PrivateMean):
    """Draws the same noise in every fit, past the source of its charge."""

    def _total(self, X, mechanism, source):
        noise = np.random.default_rng(0).laplace(scale=mechanism.scale, size=X.shape[1])
        return np.clip(X, -1.0, 1.0).sum(axis=0) + noise


class SharingCentroids(PrivateCentroids):
    """Adds one noise vector to the sums of all classes."""

    def _noisy(self, sums, mechanism, source):
        noise = mechanism.release(np.zeros(sums.shape[1]), random_state=source)
        return sums + noise


class SecretiveMean(PrivateMean):
    """Uses a seed and says that it used none."""

    def fit(self, X, y=None):
        super().fit(X)
        self.privacy_ = replace(self.privacy_, seeded=False)
        return self


class TersePublicMean(PrivateMean):
    """Says nothing of what it took to be public."""

    def _public(self):
        return ()


class RowsMean(PrivateMean):
    """States the epsilon of one row where groups are protected."""

    def fit(self, X, y=None):
        super().fit(X)
        self.privacy_ = replace(self.privacy_, epsilon=self.epsilon)
        return self


class MeanOfPersons(PrivateMean):
    """Means of persons, each of whose rows counts by its share, or as one."""

    shares = True

    def fit(self, X, y=None, groups=None):
        with PrivateFit(self) as fit:
            X = self._validate(X)
            n = fit.read_groups(groups, len(X))
            plan = self._plan(self._mechanism(X.shape[1]))
            source = fit.charge(plan)
            if fit.run_params and self.shares:
                X = np.clip(X, -1.0, 1.0) * fit.run_params["persons"].row_weights[:, None]
            total = self._total(X, plan.mechanism, source)
            fit.publish(plan, public=self._public(), **self._released(X, total / n))
        return self

    def _plan(self, mechanism):
        return plan_release(mechanism, None)


class CrowdedMean(MeanOfPersons):
    """Counts each row of a person as one."""

    shares = False


class PrivateFractions(PrivateMean):
    """Noisy sums of values within [0, 1], which a replaced row changes as much as a removed one."""

    def _mechanism(self, n_features):
        return LaplaceMechanism(self.epsilon, n_features)

    def _total(self, X, mechanism, source):
        return mechanism.release(np.clip(X, 0.0, 1.0).sum(axis=0), random_state=source)


class OneRelationCounts(PrivateFractions):
    """Has the sensitivity of a removed row for two counts that a replaced row changes together."""

    def _mechanism(self, n_features):
        return LaplaceMechanism(self.epsilon, 1.0)

    def _total(self, X, mechanism, source):
        n_positive = np.sum(X[:, 0] > 0.0)
        counts = np.array([n_positive, len(X) - n_positive], dtype=float)
        return mechanism.release(counts, random_state=source)


class OneRelationMean(PrivateMean):
    """Has the sensitivity of a removed row whatever the relation."""

    def _mechanism(self, n_features):
        return LaplaceMechanism(self.epsilon, n_features)


class QuietMaxAbsScaler(DPMaxAbsScaler):
    """Has ten thousand times less noise in its ranks than it claims."""

    def plan_fit(self, shape, guarantee):
        weak = replace(guarantee, epsilon=1e4 * guarantee.epsilon)
        plan = super().plan_fit(shape, weak)
        claimed = super().plan_fit(shape, guarantee)
        return replace(claimed, run=plan.run)


class QuietMagnitudes(PrivateMean):
    """Means of magnitudes within declared bounds, with ten thousand times less noise."""

    def __init__(self, epsilon=1.0, *, bounds=(-10.0, 10.0), accountant=None, random_state=None):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.bounds = bounds

    def _total(self, X, mechanism, source):
        total = np.abs(np.clip(X, *self.bounds)).sum(axis=0)
        return total + 1e-4 * mechanism.release(np.zeros(X.shape[1]), random_state=source)


class IdleMean(PrivateMean):
    """Adds the same noise whatever epsilon is."""

    def _total(self, X, mechanism, source):
        return super()._total(X, LaplaceMechanism(1.0, mechanism.sensitivity), source)


class CappedMean(PrivateMean):
    """Never uses an epsilon above 1."""

    def _total(self, X, mechanism, source):
        mechanism = LaplaceMechanism(min(self.epsilon, 1.0), mechanism.sensitivity)
        return super()._total(X, mechanism, source)


class ShrunkenMean(PrivateMean):
    """Divides by ten rows more than there are."""

    def _released(self, X, mean):
        return {"mean_": mean * len(X) / (len(X) + 10.0)}


class QuietMean(PrivateMean):
    """Adds a hundredth of the noise."""

    def _total(self, X, mechanism, source):
        total = np.clip(X, -1.0, 1.0).sum(axis=0)
        return total + 0.01 * (super()._total(X, mechanism, source) - total)


class UnclippedMean(PrivateMean):
    """Declares bounds and clips nothing to them."""

    def __init__(self, epsilon=1.0, *, bounds=(-1.0, 1.0), accountant=None, random_state=None):
        super().__init__(epsilon, accountant=accountant, random_state=random_state)
        self.bounds = bounds

    def _total(self, X, mechanism, source):
        return mechanism.release(X.sum(axis=0), random_state=source)


class FixedMean(UnclippedMean):
    """Declares bounds and clips to others, which it always takes."""

    def _total(self, X, mechanism, source):
        return super()._total(np.clip(X, -1.0, 1.0), mechanism, source)


class SearchingMean(UnclippedMean):
    """Declares bounds and clips to those that it finds in the data."""

    def _total(self, X, mechanism, source):
        return super()._total(np.clip(X, *np.quantile(X, [0.1, 0.9])), mechanism, source)


class UnchargedMean(PrivateMean):
    """Charges nothing."""

    def fit(self, X, y=None):
        accountant, self.accountant = self.accountant, None
        super().fit(X)
        self.accountant = accountant
        return self


class MeanOfColumns(OneToOneFeatureMixin, TransformerMixin, PrivateEstimator):
    """Means by a plan; all that a subclass of `PrivateEstimator` must have."""

    def __init__(self, epsilon=1.0, *, accountant=None, random_state=None):
        self.epsilon = epsilon
        self.accountant = accountant
        self.random_state = random_state

    @private_fit_method
    def fit(self, X, y=None):
        with private_fit(self) as fit:
            table = fit.read(X)
            plan = self.plan_fit(table.shape, fit.guarantee)
            fit.publish(plan, mean_=fit.run(plan, table))
        return self

    @plans_for_groups
    def plan_fit(self, shape, guarantee):
        moved = float(guarantee.neighbors.sensitivity_factor)
        mechanism = LaplaceMechanism(guarantee.epsilon, moved * shape.n_columns)
        run = partial(_mean_of_columns, mechanism)
        plan = plan_release(mechanism, run, size=shape.n_columns)
        return replace(plan, by_person=False)

    @row_wise_answer
    def transform(self, X):
        check_is_fitted(self)
        return read_array(self, X, dtype=np.float64, reset=False) - self.mean_


def _mean_of_columns(mechanism, X, source):
    total = np.clip(X, -1.0, 1.0).sum(axis=0)
    return mechanism.release(total, random_state=source) / len(X)


class WeightedMean(PrivateMean):
    """Takes weights, each of which may change what one row can do."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(X)


class MeddlingMean(PrivateMean):
    """Changes a parameter in `fit`, against scikit-learn's rules."""

    def fit(self, X, y=None):
        super().fit(X)
        self.epsilon = float(self.epsilon) + 1e-9
        return self


class TellingMean(PlainMean):
    """Tells of raw values where no release is: in the ledger, a warning, its class, or in print.

    Parameters
    ----------
    where : {"ledger", "warning", "class", "print"}
    """

    def __init__(self, epsilon=1.0, *, where="ledger", accountant=None):
        super().__init__(epsilon, accountant=accountant)
        self.where = where

    def _validate(self, X):
        X = super()._validate(X)
        self._words = f"the mean is {X.mean():.17g}" if len(X) > 1 else ""
        return X

    def _charge(self):
        words, self._words = self._words, None
        label = words if self.where == "ledger" else ""
        self.accountant.charge(PureDP(self.epsilon), epsilon=self.epsilon, label=label)
        if self.where == "warning":
            warnings.warn(words, stacklevel=2)
        if self.where == "print":
            print(words)
        if self.where == "class":
            type(self).words = words
