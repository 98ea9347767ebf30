# SPDX-License-Identifier: Apache-2.0
"""Reports come in here, and nothing else about their senders does."""

from frankly_server.intake.intake import Intake, Outcome
from frankly_server.intake.releasing import Releasing
from frankly_server.intake.tokens import Invites

__all__ = ["Intake", "Invites", "Outcome", "Releasing"]
