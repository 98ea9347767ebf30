# SPDX-License-Identifier: Apache-2.0
"""Reports come in here, and nothing else about their senders does."""

from frankly_server.intake.intake import Intake, Outcome

__all__ = ["Intake", "Outcome"]
