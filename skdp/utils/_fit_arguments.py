"""Arguments of `fit` that other estimators take and private ones do not."""

from functools import wraps
from inspect import signature

INSTEAD = {
    "sample_weight": "the noise would have to hide the largest weight. Weight classes by "
    "class_weight={label: weight}, which is public, or leave the weights out"
}


def says_what_to_do_instead(fit):
    """Return a `fit` whose errors about arguments that it does not take name the remedy."""
    refused = INSTEAD.keys() - signature(fit).parameters.keys()

    @wraps(fit)
    def checked(self, *args, **params):
        for name in refused & params.keys():
            raise TypeError(f"{type(self).__name__}.fit takes no {name}: {INSTEAD[name]}")
        return fit(self, *args, **params)

    return checked
