# SPDX-License-Identifier: Apache-2.0
"""Surveys: definitions, drafts and signed documents."""

from frankly_server.surveys.surveys import Change, Erased, Summary, Surveys

__all__ = ["Change", "Erased", "Summary", "Surveys"]
