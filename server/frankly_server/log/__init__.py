# SPDX-License-Identifier: Apache-2.0
"""Transparency log: heads and proofs, witnesses, and the audit of a server."""

from frankly_server.log.service import LogService

__all__ = ["LogService"]
