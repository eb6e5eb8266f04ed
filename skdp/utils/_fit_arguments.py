"""Arguments of `fit` that other estimators take and private ones do not."""

from functools import wraps


def without_weights(fit):
    """Return a fit, or partial fit, whose error about `sample_weight` says what to do instead."""

    @wraps(fit)
    def checked(self, *args, **params):
        if "sample_weight" in params:
            raise TypeError(
                "private fits take no sample_weight, whose largest the noise would have to hide: "
                "weight classes by class_weight={label: weight}, which is public, or leave it out"
            )
        return fit(self, *args, **params)

    return checked
