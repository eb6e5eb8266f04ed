"""Privacy budgets: the accountant, and the ledgers that record every charge."""

from skdp.ledger._accountant import PrivacyAccountant
from skdp.ledger._chain import Record, chain_end, next_record
from skdp.ledger._registry import Ledger, open_ledger, register_ledger
from skdp.ledger._report import BudgetReport
from skdp.ledger._reservation import Allowance, PlannedCharge, Reservation, plan_event
from skdp.ledger._state import Charge, Part, Reuse

__all__ = [
    "Allowance",
    "BudgetReport",
    "Charge",
    "Ledger",
    "Part",
    "PlannedCharge",
    "PrivacyAccountant",
    "Record",
    "Reservation",
    "Reuse",
    "chain_end",
    "next_record",
    "open_ledger",
    "plan_event",
    "register_ledger",
]
