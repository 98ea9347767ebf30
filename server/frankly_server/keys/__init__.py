# SPDX-License-Identifier: Apache-2.0
"""Signing keys on disk, their rotation, and API keys."""

from frankly_server.keys.access import Access, Principal
from frankly_server.keys.keyring import KeyPlan, Keyring, NewKeys, nearly_full
from frankly_server.keys.rotation import Proposal, Rotation, RotationChange
from frankly_server.keys.status import KeyLine, Status, status

__all__ = [
    "Access",
    "KeyLine",
    "KeyPlan",
    "Keyring",
    "NewKeys",
    "Principal",
    "Proposal",
    "Rotation",
    "RotationChange",
    "Status",
    "nearly_full",
    "status",
]
