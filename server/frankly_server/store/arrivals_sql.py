# SPDX-License-Identifier: Apache-2.0
"""What PostgreSQL is told of reports that arrive: the statement that keeps and counts those that are new."""

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING, Final

from frankly_server.store.counts import slot
from frankly_server.store.schema import counts, counts_by_day, pair_counts, reports
from frankly_server.store.upsert import adding, array, into

if TYPE_CHECKING:
    from frankly_server.store.arrivals import Kind

OPEN: Final = "survey = {} AND (state <> 'open' OR stop_reports IS NOT NULL)"
FORMATS: Final = [0, 1, 1, *[0] * 18]
"""Of the parameters: 1 for those that grow with the reports, in the database's binary form, 0 for text."""
_BYTEA: Final = 17
_INT4: Final = 23
_ARRAY: Final = Struct(">iiIii")
_ELEMENT: Final = Struct(">ii")
_LENGTH_OF_ID: Final = "00000010"
_WORTH_KEEPING: Final = 512
"""Counts of a group's kinds; what belongs to more is made again: few groups have the same."""

# Sorted as `Counts.add` and `Reports.add_many` sort, and run in the order of `add_to_each`: transactions that meet take
# rows in one order and cannot deadlock. `reports` is named first, as `Counts.rebuild` locks it.
_KEEP: Final = f"""
WITH given AS MATERIALIZED (SELECT * FROM unnest($2::bytea[], $3::int[]) AS x(id, kind)),
kinds AS MATERIALIZED (
    SELECT * FROM unnest($7::bytea[], $8::text[], $9::text[]) WITH ORDINALITY AS x(document, symbols, strata, kind)
),
new AS (
    {into(reports)}
    SELECT $1::bytea, id, document, symbols, strata FROM given JOIN kinds USING (kind)
    WHERE NOT EXISTS (SELECT FROM survey_standings WHERE {OPEN.format("$1::bytea")})
    ORDER BY id {{taken}} RETURNING id, document, symbols, strata
),
told AS (
    SELECT kind, document, strata, n
    FROM (SELECT document, symbols, strata, count(*) AS n FROM new GROUP BY document, symbols, strata) AS x
    JOIN kinds USING (document, symbols, strata)
),
single AS (
    {into(counts)}
    SELECT document, block, strata, symbol, $5::smallint, sum(n)::bigint
    FROM told JOIN unnest($10::int[], $11::smallint[], $12::int[]) AS x(kind, block, symbol) USING (kind)
    GROUP BY document, block, strata, symbol ORDER BY document, block, strata COLLATE "C", symbol
    {adding(counts)}
),
pair AS (
    {into(pair_counts)}
    SELECT document, block, other, strata, symbol, other_symbol, $6::smallint, sum(n)::bigint
    FROM told JOIN unnest($13::int[], $14::smallint[], $15::smallint[], $16::int[], $17::int[])
        AS x(kind, block, other, symbol, other_symbol) USING (kind)
    GROUP BY document, block, other, strata, symbol, other_symbol
    ORDER BY document, block, other, strata COLLATE "C", symbol, other_symbol
    {adding(pair_counts)}
),
day AS (
    {into(counts_by_day)}
    SELECT document, block, strata, $4::text, symbol, other_symbol, $6::smallint, sum(n)::bigint
    FROM told JOIN unnest($18::int[], $19::smallint[], $20::int[], $21::int[])
        AS x(kind, block, symbol, other_symbol) USING (kind)
    GROUP BY document, block, strata, symbol, other_symbol
    ORDER BY document, block, strata COLLATE "C", symbol, other_symbol
    {adding(counts_by_day)}
)
SELECT {{said}} FROM new
"""  # noqa: S608 - names of ours; values travel as parameters
_TYPES: Final = (
    "bytea, bytea[], int[], text, smallint, smallint, bytea[], text[], text[], int[], smallint[], int[], "
    "int[], smallint[], smallint[], int[], int[], int[], smallint[], int[], int[]"
)
ANY_NEW: Final = b"frankly_any_new"
"""Keeps what is new of some reports and returns its ids, one after the other."""
ALL_NEW: Final = b"frankly_all_new"
"""Keeps some reports if all are new and returns whether; else keeps none."""
# An insert that leaves taken ids alone announces each row before it writes it: half as much CPU again. One
# that fails at a taken id does not; within a function that is no error, and nothing of it comes into the log. The
# function is of one connection alone: no migration, and nothing is left of it.
MAKE_ALL_NEW: Final = f"""
CREATE OR REPLACE FUNCTION pg_temp.frankly_all_new({_TYPES}) RETURNS boolean LANGUAGE plpgsql AS $frankly$
DECLARE every_one boolean;
BEGIN
    {_KEEP.format(taken="", said="count(*) = cardinality($2) INTO every_one")};
    RETURN every_one;
EXCEPTION WHEN unique_violation THEN
    RETURN false;
END
$frankly$
""".encode()
PREPARED: Final = {
    ANY_NEW: _KEEP.format(taken="ON CONFLICT DO NOTHING", said="string_agg(id, '')").encode(),
    ALL_NEW: f"SELECT pg_temp.frankly_all_new({', '.join(f'${i}' for i in range(1, len(FORMATS) + 1))})".encode(),
}


def parameters(survey: str, ids: Sequence[str], kinds: Sequence["Kind"], day: str) -> list[bytes]:
    """Return the parameters of both statements, of `FORMATS`."""
    # In the order of ids, so that the database finds them sorted.
    some = sorted(zip(ids, kinds, strict=True), key=itemgetter(0))
    different = tuple(dict.fromkeys(kinds))
    few = sum(len(kind.cells) for kind in different) <= _WORTH_KEEPING
    numbers, columns = _kept_columns(different) if few else _columns(different)
    return [
        b"\\x" + survey.encode(),
        _binary(_BYTEA, bytes.fromhex(_LENGTH_OF_ID + _LENGTH_OF_ID.join([i for i, _ in some])), len(some)),
        _binary(_INT4, b"".join([numbers[kind] for _, kind in some]), len(some)),
        day.encode(),
        b"%d" % slot(counts, ids[0]),
        b"%d" % slot(pair_counts, ids[0]),
        *columns,
    ]


@lru_cache(maxsize=256)
def _kept_columns(kinds: tuple["Kind", ...]) -> tuple[dict["Kind", bytes], tuple[bytes, ...]]:
    """Return `_columns` of the same kinds without work: most groups are of few."""
    return _columns(kinds)


def _columns(kinds: tuple["Kind", ...]) -> tuple[dict["Kind", bytes], tuple[bytes, ...]]:
    """Return each kind's number, as an element of an array, and the statement's parameters from $7 on.

    The parameters are the kinds and the counts of each under its number. Kinds that say the same have one number.
    """
    firsts: dict[tuple[bytes, str, str], Kind] = {}
    for kind in kinds:
        firsts.setdefault((kind.document, kind.symbols, kind.strata), kind)
    places = {said: i for i, said in enumerate(firsts, 1)}
    columns = [array(list(column)) for column in zip(*firsts, strict=True)]
    for name, width in (("singles", 2), ("pairs", 4), ("days", 3)):
        rows = [(i, *key) for i, kind in enumerate(firsts.values(), 1) for key in getattr(kind.cells, name)]
        columns += [array([row[column] for row in rows]) for column in range(width + 1)]
    numbers = {kind: _ELEMENT.pack(4, places[kind.document, kind.symbols, kind.strata]) for kind in kinds}
    return numbers, tuple(column.encode() for column in columns)


def _binary(kind: int, elements: bytes, n: int) -> bytes:
    """Return an array in PostgreSQL's binary form: one dimension of n elements, each after its length, none null."""
    return _ARRAY.pack(1, 0, kind, n, 1) + elements
