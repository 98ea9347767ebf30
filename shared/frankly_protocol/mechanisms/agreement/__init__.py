# SPDX-License-Identifier: Apache-2.0
"""The agreement kind: many questions under one level (docs/maths/forms.md).

A *part* is one question, or a few questions that are treated as one. The device draws a component,
then some of its parts, then a random set of answers for each of these. Every set that contains the
true answer adds to the score. An outcome whose score reaches the component's threshold has
`agree`/`disagree` times the weight of other outcomes. A report shows the component and, for each
part drawn, its set.

There are only two weights, and every answer of a part is covered equally often, so the normalisation
is the same for all true answers. A report is therefore ε-LDP for the whole form, with e^ε =
agree/disagree.
"""

from frankly_protocol.mechanisms.agreement.component import Component, Plan, Pool
from frankly_protocol.mechanisms.agreement.cover import Cover
from frankly_protocol.mechanisms.agreement.limits import (
    MAX_CELLS,
    MAX_CHOICES,
    MAX_QUESTIONS,
    Truth,
)
from frankly_protocol.mechanisms.agreement.mechanism import AgreementMechanism

__all__ = [
    "MAX_CELLS",
    "MAX_CHOICES",
    "MAX_QUESTIONS",
    "AgreementMechanism",
    "Component",
    "Cover",
    "Plan",
    "Pool",
    "Truth",
]
