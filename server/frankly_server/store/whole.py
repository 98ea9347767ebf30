# SPDX-License-Identifier: Apache-2.0
"""Released reports counted by all that they hold: for releases, for checks, and for tables that no count can tell.

This reads every report of a document, unlike everything else that estimates need.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, select

from frankly_server.store.schema import reports


class Alike(NamedTuple):
    """Reports of one release that say the same: symbols in JSON form, one per block; n of them."""

    release: int
    symbols: list[Any]
    stratum: str
    n: int


class Whole:
    """The released rows of the `reports` table within one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_document(self, survey: str, digest: str, only: int | None = None) -> Iterator[Alike]:
        """Yield the reports of one document, of all releases or of one, in no order."""
        keys = (reports.c.release, reports.c.symbols, reports.c.strata)
        wanted = (reports.c.survey == survey) & (reports.c.document == digest)
        wanted &= reports.c.release.is_not(None) if only is None else reports.c.release == only
        found = select(*keys, func.count()).where(wanted).group_by(*keys).execution_options(yield_per=1000)
        for release, symbols, stratum, n in self._connection.execute(found):
            yield Alike(release, json.loads(f"[{symbols}]"), stratum, int(n))
