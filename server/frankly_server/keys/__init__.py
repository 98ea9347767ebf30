# SPDX-License-Identifier: Apache-2.0
"""Signing keys on disk, their rotation, and API keys."""

from frankly_server.keys.access import Access, Principal
from frankly_server.keys.keyring import Keyring, NewKeys, Plan, nearly_full
from frankly_server.keys.rotation import Change, Proposal, Rotation
from frankly_server.keys.status import KeyLine, Status, status

__all__ = [
    "Access",
    "Change",
    "KeyLine",
    "Keyring",
    "NewKeys",
    "Plan",
    "Principal",
    "Proposal",
    "Rotation",
    "Status",
    "nearly_full",
    "status",
]
