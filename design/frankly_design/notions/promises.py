# SPDX-License-Identifier: Apache-2.0
"""Claims of notions by name, with the exact levels and priors that the verifier checks (spec 1.4)."""

from fractions import Fraction

from frankly_protocol.audit import NOTIONS, Claim
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_design.notions.declared.notion import Asked
from frankly_design.notions.declared.registry import DECLARED
from frankly_design.notions.prior import Prior


def require_notion(notion: object) -> str:
    """Return the notion if it is known. Raises InvalidInput(unsupported), listing the notions."""
    if not isinstance(notion, str) or notion not in NOTIONS:
        raise InvalidInput(Problem.UNSUPPORTED, f"the notions are {', '.join(NOTIONS)}", "notion")
    return notion


def promise(notion: str, prior: Prior, epsilon: Fraction) -> Claim:
    """Return the claim of a notion with a single level in nats (ldp, secret-ldp, lip) and a prior.

    Raises InvalidInput: unsupported, choice_unprotected, secret_empty.
    """
    declared = DECLARED[require_notion(notion)]
    if declared.required != ("epsilon",):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"{notion} cannot be promised by one level and a prior alone",
            "notion",
        )
    return declared.claims(Asked([prior], prior.answers, epsilon=epsilon))[0]
