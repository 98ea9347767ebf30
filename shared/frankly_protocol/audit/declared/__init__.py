# SPDX-License-Identifier: Apache-2.0
"""The privacy notions, each declared in one place."""

from collections.abc import Mapping
from typing import Final

from frankly_protocol.audit.declared.dp import Dp
from frankly_protocol.audit.declared.dpv import Dpv
from frankly_protocol.audit.declared.ldp import Ldp
from frankly_protocol.audit.declared.lift import Alip, Lip, Srlip
from frankly_protocol.audit.declared.metric_ldp import MetricLdp
from frankly_protocol.audit.declared.notion import Notion
from frankly_protocol.audit.declared.rldp import Rldp
from frankly_protocol.audit.declared.secret_ldp import SecretLdp

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
