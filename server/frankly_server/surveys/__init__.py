# SPDX-License-Identifier: Apache-2.0
"""Surveys: definitions, drafts and the signed documents made of them."""

from frankly_server.surveys.definition import SurveyDefinition, parse_definition
from frankly_server.surveys.published import Published, PublishedBlock
from frankly_server.surveys.surveys import Change, Erased, Summary, Surveys

__all__ = [
    "Change",
    "Erased",
    "Published",
    "PublishedBlock",
    "Summary",
    "SurveyDefinition",
    "Surveys",
    "parse_definition",
]
