# SPDX-License-Identifier: Apache-2.0
"""The exact verifier, the only authority on privacy; no decision uses floats (spec 2.3)."""

from frankly_protocol.audit.bounds import (
    chance_up,
    exp_lower,
    exp_upper,
    level_for,
    ln_up,
    parse_chance,
    parse_epsilon,
    parse_nats,
)
from frankly_protocol.audit.claims import NOTIONS, PRIOR_BASED, PRIOR_FREE, Claim
from frankly_protocol.audit.notions import (
    Worst,
    ceiling,
    is_endless,
    require_private,
    stated_ceiling,
    worst,
)
from frankly_protocol.audit.ratios import AVERAGE
from frankly_protocol.audit.report import (
    DEVICE_CAP,
    AnswersLevel,
    Charge,
    ReportLevel,
    SecretLevel,
    largest_level,
    lift_bound,
    odds_bound,
    report_level,
    total_charge,
)
from frankly_protocol.audit.work import require_verifiable, work

__all__ = [
    "AVERAGE",
    "DEVICE_CAP",
    "NOTIONS",
    "PRIOR_BASED",
    "PRIOR_FREE",
    "AnswersLevel",
    "Charge",
    "Claim",
    "ReportLevel",
    "SecretLevel",
    "Worst",
    "ceiling",
    "chance_up",
    "exp_lower",
    "exp_upper",
    "is_endless",
    "largest_level",
    "level_for",
    "lift_bound",
    "ln_up",
    "odds_bound",
    "parse_chance",
    "parse_epsilon",
    "parse_nats",
    "report_level",
    "require_private",
    "require_verifiable",
    "stated_ceiling",
    "total_charge",
    "work",
    "worst",
]
