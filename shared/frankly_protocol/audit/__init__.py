# SPDX-License-Identifier: Apache-2.0
"""The exact verifier: whole numbers only, and the only authority on privacy (DESIGN §3.3)."""

from frankly_protocol.audit.bounds import exp_lower, exp_upper, level_for, ln_up, parse_epsilon, parse_nats
from frankly_protocol.audit.claims import NOTIONS, PRIOR_BASED, PRIOR_FREE, Claim
from frankly_protocol.audit.ledger import FormLevel, LedgerLine, form_level, ledger_total
from frankly_protocol.audit.notions import Worst, ceiling, is_endless, require_private, worst
from frankly_protocol.audit.ratios import AVERAGE

__all__ = [
    "AVERAGE",
    "NOTIONS",
    "PRIOR_BASED",
    "PRIOR_FREE",
    "Claim",
    "FormLevel",
    "LedgerLine",
    "Worst",
    "ceiling",
    "exp_lower",
    "exp_upper",
    "form_level",
    "is_endless",
    "ledger_total",
    "level_for",
    "ln_up",
    "parse_epsilon",
    "parse_nats",
    "require_private",
    "worst",
]
