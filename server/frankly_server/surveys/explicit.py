# SPDX-License-Identifier: Apache-2.0
"""A family's own parameters, as an admin writes them beside the level that is promised."""

from typing import Any, Literal

from frankly_server.surveys.fields import Ceiling, Cell, Part, Whole


class OwnParameters(Part):
    """What an explicit mechanism is built at, where the level alone does not say it; `design` says which takes which.

    p00, p11 : chances that answer 0 and answer 1 are told as they are. alpha : the family's own level, nats. region :
    of two answers under dp. lift_measure, lift_order : what the watchdog's mechanisms bound. The block's notion and
    level are promised all the same: where the parameters break it, the block is refused.
    """

    p00: Cell | None = None
    p11: Cell | None = None
    alpha: Ceiling | None = None
    region: Literal["honest", "whole"] | None = None
    lift_measure: Literal["lift", "l1", "chi2", "alpha"] | None = None
    lift_order: Whole | None = None

    def own(self) -> dict[str, Any]:
        """Return the parameters that are given, as `design` reads them."""
        return {name: getattr(self, name) for name in OwnParameters.model_fields if getattr(self, name) is not None}
