"""What a fit will release, known before it sees a table."""

from typing import Protocol

__all__ = ["Plan"]


class Plan(Protocol):
    """What a fit will release, made from parameters and from what of the table is public.

    An estimator's ``plan_fit(shape, guarantee)`` returns one; `PrivateFit.charge` books it and
    ``run(table, source)`` makes the release, with noise from the source that the charge gave. A
    mechanism is the smallest plan: its run is `release`.

    Attributes
    ----------
    event : Event
        What it does, for the accountant.
    epsilon, delta : float
        What it was calibrated to.
    name : str
        In words.
    scale, sensitivity : float
        Of its noise, and of what the noise is added to.

    Notes
    -----
    A plan may also have `n_features_out`, the number of columns that a transformer makes, where
    that is public, `sparse_output`, whether they are sparse, and `sampler`, in words which rows go
    into the release.
    """

    event: object
    epsilon: float
    delta: float
    name: str
    scale: float
    sensitivity: float
