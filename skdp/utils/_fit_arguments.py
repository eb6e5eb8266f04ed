"""Arguments of `fit` that other estimators take and private ones do not."""

from functools import wraps

NO_WEIGHTS = (
    "private fits take no sample_weight, whose largest the noise would have to hide: weight "
    "classes by class_weight={label: weight}, which is public, or leave it out"
)


def fitted_names(estimator):
    """Return the names of an estimator's fitted attributes, by sklearn's convention."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("__")]


def forget_fitted(estimator):
    """Delete an estimator's fitted attributes."""
    for name in fitted_names(estimator):
        delattr(estimator, name)


def without_weights(fit):
    """Return a fit, or partial fit, that refuses every `sample_weight` but None.

    A refused `fit` leaves no fitted attribute, whatever refuses it: also an unknown or a missing
    argument, which Python refuses before `PrivateFit` is entered. A refused `partial_fit` leaves
    the model as it was.
    """

    @wraps(fit)
    def checked(self, *args, **params):
        statement = vars(self).get("privacy_")
        try:
            if params.pop("sample_weight", None) is not None:
                raise TypeError(NO_WEIGHTS)
            return fit(self, *args, **params)
        except TypeError:
            # A statement that is still the old one says that the fit has not begun. A new one may
            # be there if a callback fails after the fit.
            if fit.__name__ == "fit" and vars(self).get("privacy_") is statement:
                forget_fitted(self)
            raise

    return checked
