# SPDX-License-Identifier: Apache-2.0
"""Transparency log: heads and proofs, the witness of a log, and the audit of a server."""

from frankly_server.log.service import LogService

__all__ = ["LogService"]
