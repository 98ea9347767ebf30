# SPDX-License-Identifier: Apache-2.0
"""Reports come in here, and nothing else about their senders does."""

from frankly_server.intake.intake import Intake
from frankly_server.intake.storing import AllAccepted, Outcome
from frankly_server.intake.tokens import Invites

__all__ = ["AllAccepted", "Intake", "Invites", "Outcome"]
