# SPDX-License-Identifier: Apache-2.0
"""Columns of a segment: a report's id and stratum, and one column per block in its counted form.

- A block whose symbols have numbers (`store.Layout`): the number.
- A larger set whose positions are counted in pairs: the list of its positions.
- Any other block: the symbol's JSON. Symbols of such a block are not counted, but estimates can read
them, and they reveal whether two reports with the same id differ.
"""

import json
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any, Final

from frankly_design.kinds.kind import Counted
from frankly_design.kinds.symbols import members
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.store import Layout
from frankly_server.store.exporting import ExportedRow

ID: Final = "id"
STRATUM: Final = "stratum"


def block_column(block: int) -> str:
    """Return the name of a block's column."""
    return f"b{block}"


def optional_module(module: str) -> Any:
    """Return an optional module.

    Raises InvalidInput(unsupported), whose message contains the package, if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise InvalidInput(
            Problem.UNSUPPORTED, f"this needs {package}: pip install {package}", package
        ) from None


def schema(layout: Layout) -> Any:
    """Return the Arrow schema of a document's segments."""
    arrow = optional_module("pyarrow")
    blocks = []
    for block, sizes in enumerate(layout.radices):
        unnumbered = arrow.list_(arrow.int16()) if block in layout.sets else arrow.string()
        blocks.append((block_column(block), arrow.int32() if sizes else unnumbered))
    return arrow.schema([(ID, arrow.binary()), (STRATUM, arrow.string()), *blocks])


def table(layout: Layout, rows: Iterable[ExportedRow], arrow_schema: Any) -> Any:
    """Return rows (at least one) as an Arrow table; `arrow_schema` is the result of `schema`."""
    arrow = optional_module("pyarrow")
    ids, symbols, strata = zip(*rows, strict=True)
    # The dictionary parses each distinct text only once; most rows share a few texts.
    encoded = arrow.array(symbols, arrow.string()).dictionary_encode()
    distinct = [_values(layout, text) for text in encoded.dictionary.to_pylist()]
    columns = [arrow.array(ids, arrow.binary()), arrow.array(strata, arrow.string())]
    block_fields = list(arrow_schema)[len(columns) :]
    for block_field, values in zip(block_fields, zip(*distinct, strict=True), strict=True):
        columns.append(arrow.array(values, block_field.type).take(encoded.indices))
    return arrow.Table.from_arrays(columns, schema=arrow_schema)


def _values(layout: Layout, symbols_json: str) -> list[Any]:
    symbols = json.loads(f"[{symbols_json}]")
    numbers = layout.numbers(symbols)
    return [
        number if layout.radices[block] else _unnumbered_value(layout, block, symbol)
        for block, (number, symbol) in enumerate(zip(numbers, symbols, strict=True))
    ]


def _unnumbered_value(layout: Layout, block: int, symbol: Any) -> Any:
    return members(symbol) if block in layout.sets else json.dumps(symbol, separators=(",", ":"))


def symbols_of(layout: Layout, values: Sequence[Any]) -> list[Any]:
    """Return the symbols of a row in JSON form, one per block. values : values of its columns."""
    return [
        _symbol(kind, value, is_numbered=bool(layout.radices[block]), is_set=block in layout.sets)
        for block, (kind, value) in enumerate(zip(layout.kinds, values, strict=True))
    ]


def _symbol(kind: Counted, value: Any, *, is_numbered: bool, is_set: bool) -> Any:
    if is_numbered:
        return kind.symbol_of(value)
    return kind.symbol_of(sum(1 << x for x in value)) if is_set else json.loads(value)
