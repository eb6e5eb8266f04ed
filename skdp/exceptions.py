"""Errors and warnings of skdp."""

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "PrivacyViolationWarning",
    "RawDataWarning",
    "SeededNoiseWarning",
]


class BudgetExceededError(RuntimeError):
    """A release was refused because the budget cannot pay for it.

    Nothing was computed from the data and nothing was charged. The message and the
    attributes state public amounts only.

    Parameters
    ----------
    asked : tuple of (float, float)
        The (epsilon, delta) of the refused release.
    remaining : tuple of (float, float)
        What the budget has left.
    total : tuple of (float, float)
        The budget.
    name : str, default=""
        Of a limit on some users or purposes that cannot pay; "" for the data set's.
    message : str, default=""
        What is said in the place of the usual sentence, where several releases are refused at once.
    """

    def __init__(self, asked, remaining, total, name="", message=""):
        super().__init__(asked, remaining, total, name, message)
        self.asked = tuple(asked)
        self.remaining = tuple(remaining)
        self.total = tuple(total)
        self.name = name
        self.message = message

    def __str__(self):
        if self.message:
            return self.message

        def amount(pair):
            return f"(epsilon={pair[0]:.6g}, delta={pair[1]:.6g})"

        budget = f"the limit {self.name!r}" if self.name else "the budget"
        return (
            f"the release costs {amount(self.asked)}, {budget} has {amount(self.remaining)} left "
            f"of {amount(self.total)}; nothing was computed or charged"
        )


class LedgerError(RuntimeError):
    """The ledger cannot be used: missing, locked, corrupt, foreign or opened with another configuration."""


class SeededNoiseWarning(UserWarning):
    """Noise was drawn from an integer seed: whoever knows the seed can remove the noise."""


class RawDataWarning(UserWarning):
    """A tool around a private estimator computes from the raw rows what is charged nowhere.

    It is given before the charge, so that ``warnings.simplefilter("error", RawDataWarning)``
    refuses such a fit without cost; ``PrivacyAccountant(..., on_raw_data="raise")`` does so for
    all who use a ledger.
    """


class PrivacyViolationWarning(UserWarning):
    """An audit certified more than an estimator claims: the claim does not hold."""
