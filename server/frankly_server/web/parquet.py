# SPDX-License-Identifier: Apache-2.0
"""Export of estimates as a Parquet file; requires pyarrow."""

import io
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from frankly_analyst.formats import to_arrow
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem


def to_parquet(answer: Mapping[str, Any]) -> bytes:
    """Return the lines of `frankly_analyst.formats.lines` as one Parquet file.

    Raises InvalidInput(unsupported) if pyarrow is not installed.
    """
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "this server cannot write Parquet: install pyarrow beside it, or request csv",
            "format",
        ) from None
    file = io.BytesIO()
    parquet.write_table(to_arrow(arrow, answer), file)
    return file.getvalue()
