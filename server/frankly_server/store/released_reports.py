# SPDX-License-Identifier: Apache-2.0
"""Released reports grouped by equal contents, for releases, checks and estimates without counts.

Estimates use counts where possible, because this query reads every report of a document.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from sqlalchemy import func, select

from frankly_server.store.access import TableAccess
from frankly_server.store.reports import reports


class IdenticalReports(NamedTuple):
    """`n` reports of one release with equal contents. symbols : in JSON form, one per block."""

    release: int
    symbols: list[Any]
    stratum: str
    n: int


class ReleasedReports(TableAccess):
    """The released rows of the `reports` table within one transaction."""

    def of_document(
        self, survey: str, digest: str, only: int | None = None
    ) -> Iterator[IdenticalReports]:
        """Yield the released reports of one document in no particular order.

        only : the release to read; None for all releases.
        """
        keys = (reports.c.release, reports.c.symbols, reports.c.strata)
        condition = (reports.c.survey == survey) & (reports.c.document == digest)
        condition &= reports.c.release.is_not(None) if only is None else reports.c.release == only
        query = select(*keys, func.count()).where(condition).group_by(*keys)
        # yield_per, because if most contents differ, there are almost as many groups as reports,
        # which must not all be in memory.
        groups = self._connection.execute(query.execution_options(yield_per=1000))
        for release, symbols, stratum, n in groups:
            yield IdenticalReports(release, json.loads(f"[{symbols}]"), stratum, int(n))
