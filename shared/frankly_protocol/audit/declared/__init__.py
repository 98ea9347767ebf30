# SPDX-License-Identifier: Apache-2.0
"""The privacy notions, each declared in one place."""

from collections.abc import Mapping
from typing import Final

from frankly_protocol.audit.declared.answer import Dp, Ldp, MetricLdp
from frankly_protocol.audit.declared.belief import Alip, Dpv, Lip, Srlip
from frankly_protocol.audit.declared.notion import Notion
from frankly_protocol.audit.declared.secret import Rldp, SecretLdp

__all__ = ["DECLARED", "Notion"]

DECLARED: Final[Mapping[str, Notion]] = {
    notion.name: notion
    for notion in (
        Ldp("ldp"),
        Dp("dp"),
        SecretLdp("secret-ldp"),
        Lip("lip"),
        Alip("alip"),
        Srlip("srlip"),
        Rldp("rldp"),
        Dpv("dpv"),
        MetricLdp("metric-ldp"),
    )
}
"""All notions, by name."""
