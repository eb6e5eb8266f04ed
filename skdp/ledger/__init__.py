"""Ledgers: a privacy budget, its accountant, and the databases that record every charge."""

from skdp.ledger._accountant import PrivacyAccountant as PrivacyAccountant
from skdp.ledger._chain import Record as Record
from skdp.ledger._chain import chain_end as chain_end
from skdp.ledger._chain import next_record as next_record
from skdp.ledger._registry import Ledger as Ledger
from skdp.ledger._registry import open_ledger as open_ledger
from skdp.ledger._registry import register_ledger as register_ledger
from skdp.ledger._report import BudgetReport as BudgetReport
from skdp.ledger._reservation import Allowance as Allowance
from skdp.ledger._reservation import PlannedCharge as PlannedCharge
from skdp.ledger._reservation import Reservation as Reservation
from skdp.ledger._reservation import plan_event as plan_event
from skdp.ledger._state import Charge as Charge
from skdp.ledger._state import Part as Part
from skdp.ledger._state import Reuse as Reuse
