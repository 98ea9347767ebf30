# SPDX-License-Identifier: Apache-2.0
"""Explicit parameters of a mechanism family, beside the promised level."""

from typing import Any, Literal

from frankly_server.surveys.fields import Ceiling, Cell, ClosedModel, Whole


class ExplicitParameters(ClosedModel):
    """Parameters of a mechanism that its level does not determine; `design` checks their use.

    p00, p11 : probabilities that answers 0 and 1 are reported unchanged. alpha : the family's
    level, in nats. region : for two answers under dp. lift_measure, lift_order : the measure that
    the watchdog's mechanisms bound. The block still promises its notion and level: parameters that
    break the promise are refused.
    """

    p00: Cell | None = None
    p11: Cell | None = None
    alpha: Ceiling | None = None
    region: Literal["honest", "whole"] | None = None
    lift_measure: Literal["lift", "l1", "chi2", "alpha"] | None = None
    lift_order: Whole | None = None

    def explicit_parameters(self) -> dict[str, Any]:
        """Return the parameters that are set, as `design` reads them."""
        # The fields of this class only: a block inherits it and has more.
        return {
            name: getattr(self, name)
            for name in ExplicitParameters.model_fields
            if getattr(self, name) is not None
        }
