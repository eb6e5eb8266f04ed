"""The configuration that a fit or a release reads from its accountant."""

from skdp.ledger._state import LedgerConfig

# Configuration of a fit without an accountant: it protects one row that is added or removed. Its
# budget has no effect, since nothing is charged.
DEFAULT_CONFIG = LedgerConfig(1.0, 0.0)


def terms_of(accountant):
    """Return the configuration of an accountant: its relation, privacy unit and composition.

    Parameters
    ----------
    accountant : PrivacyAccountant or None
        None protects one row that is added or removed.

    Returns
    -------
    LedgerConfig

    Raises
    ------
    ValueError
        If `accountant` is neither None nor an accountant.
    """
    if accountant is None:
        return DEFAULT_CONFIG
    if isinstance(accountant, type):
        raise ValueError(
            f"accountant is the class {accountant.__name__}: pass an accountant, such as "
            f"{accountant.__name__}(epsilon=1.0)"
        )
    if not hasattr(accountant, "charge"):
        raise ValueError(f"accountant must be a PrivacyAccountant or None, got {accountant!r}")
    return accountant.config
