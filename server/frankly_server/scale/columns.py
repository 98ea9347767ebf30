# SPDX-License-Identifier: Apache-2.0
"""Columns of a segment: the report's id and stratum, and one column per block, in the form that is counted.

A block whose symbols have numbers (`store.Layout`): the number. A larger set whose positions are counted in pairs: the
list of its positions. Anything else: the symbol's JSON, which only tells two reports of one id apart.
"""

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import Mechanism, ProductMechanism
from frankly_protocol.problems import Problem

from frankly_server.store import Layout
from frankly_server.store.exporting import ExportedRow
from frankly_server.store.statistics import members

ID: Final = "id"
STRATUM: Final = "stratum"


def block_column(block: int) -> str:
    """Return the name of a block's column."""
    return f"b{block}"


def needed(module: str, extra: str) -> Any:
    """Return an optional module. Raises InvalidInput(unsupported), which says what to install."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidInput(Problem.UNSUPPORTED, f"install frankly-server[{extra}] for this", extra) from None


def schema(layout: Layout) -> Any:
    """Return the Arrow schema of a document's segments."""
    arrow = needed("pyarrow", "parquet")
    blocks = []
    for block, sizes in enumerate(layout.radices):
        kind = arrow.int32() if sizes else arrow.list_(arrow.int16()) if block in layout.sets else arrow.string()
        blocks.append((block_column(block), kind))
    return arrow.schema([(ID, arrow.binary()), (STRATUM, arrow.string()), *blocks])


def table(layout: Layout, rows: Iterable[ExportedRow], wanted: Any) -> Any:
    """Return rows as an Arrow table of the schema `wanted`."""
    arrow = needed("pyarrow", "parquet")
    ids, symbols, strata = zip(*rows, strict=True)
    # Few different symbols come again and again: each is read once, its values are then taken by number.
    encoded = arrow.array(symbols, arrow.string()).dictionary_encode()
    read = [_values(layout, each) for each in encoded.dictionary.to_pylist()]
    columns = [arrow.array(ids, arrow.binary()), arrow.array(strata, arrow.string())]
    for kind, different in zip(list(wanted)[len(columns) :], zip(*read, strict=True), strict=True):
        columns.append(arrow.array(different, kind.type).take(encoded.indices))
    return arrow.Table.from_arrays(columns, schema=wanted)


def _values(layout: Layout, symbols: str) -> list[Any]:
    read = json.loads(f"[{symbols}]")
    return [
        number if sizes else members(symbol) if block in layout.sets else json.dumps(symbol, separators=(",", ":"))
        for block, (sizes, number, symbol) in enumerate(zip(layout.radices, layout.numbers(read), read, strict=True))
    ]


def symbols_of(mechanisms: Sequence[Mechanism], layout: Layout, values: Sequence[Any]) -> list[Any]:
    """Return the symbols in their JSON form, one per block, that a row's columns stand for."""
    return [
        _symbol(mechanism, layout, block, value)
        for block, (mechanism, value) in enumerate(zip(mechanisms, values, strict=True))
    ]


def _symbol(mechanism: Mechanism, layout: Layout, block: int, value: Any) -> Any:
    if not layout.radices[block] and block not in layout.sets:
        return json.loads(value)
    if isinstance(mechanism, ProductMechanism):
        return mechanism.symbol_json(layout.parts(block, value))
    return mechanism.symbol_json(value if layout.radices[block] else sum(1 << x for x in value))
