# SPDX-License-Identifier: Apache-2.0
"""Intake of reports: admission, storage as pending, tokens, refusals and releases.

No data about the sender is stored.
"""

from frankly_server.intake.intake import Intake, Outcome
from frankly_server.intake.invites import Invites
from frankly_server.intake.releasing import Releasing

__all__ = ["Intake", "Invites", "Outcome", "Releasing"]
