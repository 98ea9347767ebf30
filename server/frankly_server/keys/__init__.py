# SPDX-License-Identifier: Apache-2.0
"""Signing keys on disk, and API keys."""

from frankly_server.keys.access import Access, Principal
from frankly_server.keys.keyring import Keyring, NewKeys

__all__ = ["Access", "Keyring", "NewKeys", "Principal"]
