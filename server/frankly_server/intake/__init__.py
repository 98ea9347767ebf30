# SPDX-License-Identifier: Apache-2.0
"""Reports come in here, and nothing else about their senders does."""

from frankly_server.intake.intake import Intake
from frankly_server.intake.storing import Outcome

__all__ = ["Intake", "Outcome"]
