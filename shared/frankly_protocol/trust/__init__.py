# SPDX-License-Identifier: Apache-2.0
"""Who may sign what; no input or output of its own."""

from frankly_protocol.trust.keys import KeysDocument, Role, accept_keys

__all__ = ["KeysDocument", "Role", "accept_keys"]
