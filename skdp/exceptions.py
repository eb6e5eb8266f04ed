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
    attributes contain public amounts only.

    Parameters
    ----------
    asked : tuple of (float, float)
        The (epsilon, delta) of the refused release.
    remaining : tuple of (float, float)
        The (epsilon, delta) that remain in the budget.
    total : tuple of (float, float)
        The (epsilon, delta) of the whole budget.
    name : str, default=""
        The name of the sub-limit that is too small; "" for the data set's limit.
    message : str, default=""
        A message that replaces the usual one, for several releases that are refused at once.
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

        asked = _format_params(self.asked)
        remaining = _format_params(self.remaining)
        total = _format_params(self.total)
        budget = f"the limit {self.name!r}" if self.name else "the budget"
        return (
            f"the release costs {asked}, but {budget} has {remaining} left of {total}; "
            "nothing was computed or charged"
        )


def _format_params(params):
    epsilon, delta = params
    return f"(epsilon={epsilon:.6g}, delta={delta:.6g})"


class LedgerError(RuntimeError):
    """The ledger is missing, locked, damaged, of another configuration, or not the expected one."""


class SeededNoiseWarning(UserWarning):
    """Noise was drawn from an integer seed, so anyone who knows the seed can remove the noise."""


class RawDataWarning(UserWarning):
    """A tool around a private estimator computes results from the raw rows without a charge.

    The warning is issued before the charge, so that
    ``warnings.simplefilter("error", RawDataWarning)`` refuses such a fit at no cost.
    ``PrivacyAccountant(..., on_raw_data="raise")`` does the same for everyone who uses a ledger.
    """


class PrivacyViolationWarning(UserWarning):
    """An audit certified a larger epsilon than an estimator claims, so the claim is wrong."""
