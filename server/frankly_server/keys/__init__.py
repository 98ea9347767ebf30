# SPDX-License-Identifier: Apache-2.0
"""Signing keys on disk, their rotation, and API keys."""

from frankly_server.keys.access import Access, Principal
from frankly_server.keys.keyring import Keyring, NewKeys, KeyPlan, nearly_full
from frankly_server.keys.rotation import Proposal, Rotation, RotationChange
from frankly_server.keys.status import KeyLine, Status, status

__all__ = [
    "Access",
    "KeyLine",
    "Keyring",
    "NewKeys",
    "KeyPlan",
    "Principal",
    "Proposal",
    "Rotation",
    "RotationChange",
    "Status",
    "nearly_full",
    "status",
]
