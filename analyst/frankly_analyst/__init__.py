# SPDX-License-Identifier: Apache-2.0
"""The analyst's client: from a key to a table in three lines.

>>> analyst = Analyst("https://surveys.example.org", key)      # doctest: +SKIP
>>> estimates = analyst.estimates("5f0c…")                     # doctest: +SKIP
>>> print(estimates)                                           # doctest: +SKIP
"""

from frankly_analyst.analyst import MAX_ANSWER_BYTES, Analyst
from frankly_analyst.errors import AnalystError, InvalidRequest, Refused, Unreachable
from frankly_analyst.estimates import Estimates
from frankly_analyst.plans import Plan
from frankly_analyst.request import EstimatesRequest
from frankly_analyst.rows import Estimate

__all__ = [
    "MAX_ANSWER_BYTES",
    "Analyst",
    "AnalystError",
    "Estimate",
    "Estimates",
    "EstimatesRequest",
    "InvalidRequest",
    "Plan",
    "Refused",
    "Unreachable",
]
