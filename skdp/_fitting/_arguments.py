"""Arguments of `fit` that private estimators refuse, and fitted attributes."""

from functools import wraps

NO_WEIGHTS = (
    "sample_weight is not supported: the noise would have to hide the largest weight. Weight "
    "classes with class_weight={label: weight}, which is public, or leave sample_weight out"
)


def fitted_names(estimator):
    """Return the names of an estimator's fitted attributes, which end in an underscore."""
    return [name for name in vars(estimator) if name.endswith("_") and not name.startswith("__")]


def forget_fitted(estimator):
    """Delete an estimator's fitted attributes."""
    for name in fitted_names(estimator):
        delattr(estimator, name)


def without_weights(fit):
    """Decorate `fit` or `partial_fit` so that it refuses every `sample_weight` except None.

    After a refused `fit`, the estimator has no fitted attributes, even if Python refuses an unknown
    or missing argument before `PrivateFit` is entered. A refused `partial_fit` does not change the
    model.
    """

    @wraps(fit)
    def checked(self, *args, **params):
        statement = vars(self).get("privacy_")
        try:
            if params.pop("sample_weight", None) is not None:
                raise TypeError(NO_WEIGHTS)
            return fit(self, *args, **params)
        except TypeError:
            # If the statement is still the old one, the fit has not begun. If a callback failed
            # after the fit, the statement is new and the fitted attributes are kept.
            if fit.__name__ == "fit" and vars(self).get("privacy_") is statement:
                forget_fitted(self)
            raise

    return checked
