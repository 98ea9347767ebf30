# SPDX-License-Identifier: Apache-2.0
"""The analyst's client: three lines from a key to a table.

>>> analyst = Analyst("https://surveys.example.org", key)      # doctest: +SKIP
>>> estimates = analyst.estimates("5f0c…")                     # doctest: +SKIP
>>> print(estimates)                                           # doctest: +SKIP
"""

from frankly_server.client.analyst import MAX_ANSWER_BYTES, Analyst
from frankly_server.client.errors import Refused, Unreachable
from frankly_server.client.estimates import Estimates
from frankly_server.client.plans import Plan
from frankly_server.client.rows import Estimate

__all__ = ["MAX_ANSWER_BYTES", "Analyst", "Estimate", "Estimates", "Plan", "Refused", "Unreachable"]
