# SPDX-License-Identifier: Apache-2.0
"""Conversion of arguments to numbers; an error for any other value names the argument."""

from typing import Any

import numpy as np

from frankly_analyst.errors import InvalidRequest
from frankly_analyst.models.sample import FloatArray


def numbers(values: Any, field: str) -> FloatArray:
    """Return an array of finite numbers. Raises InvalidRequest(targets_invalid) naming the argument `field`."""
    given = np.asarray(values)
    try:
        # Otherwise strings such as "0.9" would be accepted here, and then compared as strings
        # elsewhere.
        found = None if given.dtype.kind in "US" else given.astype(float)
    except (TypeError, ValueError):
        found = None
    if found is None or not np.isfinite(found).all():
        raise InvalidRequest("must be finite numbers", code="targets_invalid", field=field)
    return found
