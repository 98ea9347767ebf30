# SPDX-License-Identifier: Apache-2.0
"""The transparency log: its heads and proofs, the witness that watches one, and the audit that re-verifies it."""

from frankly_server.log.service import LogService

__all__ = ["LogService"]
