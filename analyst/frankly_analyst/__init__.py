# SPDX-License-Identifier: Apache-2.0
"""Client for analysts: three lines from an API key to a table of estimates.

>>> analyst = Analyst("https://surveys.example.org", key)      # doctest: +SKIP
>>> estimates = analyst.estimates("5f0c…")                     # doctest: +SKIP
>>> print(estimates)                                           # doctest: +SKIP
"""

from frankly_analyst.analyst import MAX_ANSWER_BYTES, Analyst
from frankly_analyst.codebook import Category, Codebook, Variable
from frankly_analyst.comparisons import Comparison, Comparisons, WaldTest
from frankly_analyst.completion import Completion, PartCompletion, ShareBounds
from frankly_analyst.counted_part import Choice, CountedPart, Factor, Question, Stratum
from frankly_analyst.counts import Counts
from frankly_analyst.counts_request import CountsRequest
from frankly_analyst.errors import AnalystError, InvalidRequest, Refused, Unreachable
from frankly_analyst.estimates import Estimates
from frankly_analyst.plans import Plan
from frankly_analyst.random_answers import RandomAnswers
from frankly_analyst.request import EstimatesRequest
from frankly_analyst.rows import Estimate
from frankly_analyst.score_table import Column, ScoreTable
from frankly_analyst.sources import Source, Sources
from frankly_analyst.surveys import Survey, Surveys

__all__ = [
    "MAX_ANSWER_BYTES",
    "Analyst",
    "AnalystError",
    "Category",
    "Choice",
    "Codebook",
    "Column",
    "Comparison",
    "Comparisons",
    "Completion",
    "CountedPart",
    "Counts",
    "CountsRequest",
    "Estimate",
    "Estimates",
    "EstimatesRequest",
    "Factor",
    "InvalidRequest",
    "PartCompletion",
    "Plan",
    "Question",
    "RandomAnswers",
    "Refused",
    "ScoreTable",
    "ShareBounds",
    "Source",
    "Sources",
    "Stratum",
    "Survey",
    "Surveys",
    "Unreachable",
    "Variable",
    "WaldTest",
]
