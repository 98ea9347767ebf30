# SPDX-License-Identifier: Apache-2.0
"""Whole reports counted by what they hold: for tables over several blocks, which counts per block cannot tell.

This reads every report of a document, unlike everything else that estimates need.
"""

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, func, select

from frankly_server.store.schema import reports


class Together:
    """The `reports` table, counted within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_document(self, survey_id: str, digest: str) -> Iterator[tuple[list[Any], str, int]]:
        """Yield (symbols in JSON form, one per block; stratum; how many reports) of one document, in no order."""
        keys = (reports.c.symbols, reports.c.strata)
        wanted = (reports.c.survey == survey_id) & (reports.c.document == digest)
        found = select(*keys, func.count()).where(wanted).group_by(*keys).execution_options(yield_per=1000)
        for symbols, stratum, n in self._connection.execute(found):
            yield json.loads(f"[{symbols}]"), stratum, int(n)
