"""Errors and warnings of skdp."""

import math

__all__ = [
    "BudgetExceededError",
    "LedgerError",
    "PrivacyViolationWarning",
    "RawDataWarning",
    "SeededNoiseWarning",
]


class BudgetExceededError(RuntimeError):
    """A release was refused because it costs more than the remaining budget.

    Nothing was computed from the data and nothing was charged. The message and the attributes
    contain only public values.

    Parameters
    ----------
    asked : tuple of (float, float)
        The (epsilon, delta) of the refused release.
    remaining : tuple of (float, float)
        The remaining (epsilon, delta).
    total : tuple of (float, float)
        The (epsilon, delta) of the whole budget.
    name : str, default=""
        Name of the sub-limit that was exceeded; "" for the data set's budget.
    message : str, default=""
        Message that replaces the usual one if several releases are refused at once.
    """

    def __init__(
        self,
        asked: tuple[float, float],
        remaining: tuple[float, float],
        total: tuple[float, float],
        name: str = "",
        message: str = "",
    ):
        super().__init__(asked, remaining, total, name, message)
        self.asked = tuple(asked)
        self.remaining = tuple(remaining)
        self.total = tuple(total)
        self.name = name
        self.message = message

    def __str__(self):
        if self.message:
            return self.message

        cost = _format_params(self.asked)
        remaining = _format_params(self.remaining)
        total = _format_params(self.total)
        budget = "the budget"
        if self.name:
            budget = f"the limit {self.name!r}"
        if self.asked[0] == math.inf:
            return (
                f"the release has no finite epsilon at delta={self.asked[1]:.6g}, and {budget} has "
                f"{remaining} left of {total}; nothing was computed or charged"
            )
        if self.asked[0] <= self.remaining[0] and self.asked[1] <= self.remaining[1]:
            return (
                f"the release alone costs {cost}, but together with the earlier ones it exceeds "
                f"{budget} of {total}: their costs are not a sum under this composition; nothing "
                "was computed or charged"
            )
        return (
            f"the release costs {cost}, but {budget} has {remaining} left of {total}; "
            "nothing was computed or charged"
        )


def _format_params(params):
    epsilon, delta = params
    return f"(epsilon={epsilon:.6g}, delta={delta:.6g})"


class LedgerError(RuntimeError):
    """The ledger is missing, locked, damaged, not the expected one, or differently configured."""


class SeededNoiseWarning(UserWarning):
    """Noise was drawn from an integer seed, so anyone who knows the seed can remove the noise."""


class RawDataWarning(UserWarning):
    """A tool around a private estimator computes on the raw rows without a charge.

    The warning precedes the charge, so ``warnings.simplefilter("error", RawDataWarning)`` refuses
    such a fit at no cost. ``PrivacyAccountant(..., on_raw_data="raise")`` refuses it for everyone
    who uses the ledger.
    """


class PrivacyViolationWarning(UserWarning):
    """An audit proved that an estimator's privacy claim is wrong."""
