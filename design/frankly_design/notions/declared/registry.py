# SPDX-License-Identifier: Apache-2.0
"""The declaration of each notion: the only list of notions on this side of the protocol."""

from collections.abc import Mapping
from typing import Final

from frankly_protocol.audit import Claim

from frankly_design.notions.declared.answer import ANSWER_LDP, DIFFERENTIAL, METRIC_LDP
from frankly_design.notions.declared.belief import ALIP, DPV, LIP, PMC, PML, SRLIP
from frankly_design.notions.declared.notion import Notion
from frankly_design.notions.declared.secret import ROBUST_LDP, SECRET_LDP

ONE_SIDED: Final = (PML.name, PMC.name)
"""Names in requests for one-sided alip: pml (pointwise maximal leakage) is the upper side, pmc the
lower side. Documents and verifiers use only the name alip (ADR 0028)."""
_ALL: Final = (
    *(ANSWER_LDP, DIFFERENTIAL, SECRET_LDP, LIP, ALIP, SRLIP, ROBUST_LDP, DPV, METRIC_LDP),
    *(PML, PMC),
)
DECLARED: Final[Mapping[str, Notion]] = {notion.name: notion for notion in _ALL}
"""The notions by their names in requests, in the order of `frankly_protocol.audit.NOTIONS`."""


def notion_of(claim: Claim) -> Notion:
    """Return the notion of a claim."""
    return DECLARED[claim.notion]
