# SPDX-License-Identifier: Apache-2.0
"""Every kind of a document has its class, and several blocks together have one."""

from dataclasses import fields
from typing import Any

import pytest
from frankly_design.estimate import Joint, estimate
from frankly_design.kinds.dense import DenseKind
from frankly_design.kinds.joint import JointKind
from frankly_design.kinds.product import ProductKind
from frankly_design.kinds.registry import counted_of, kind_of, together
from frankly_design.kinds.subset import SubsetKind
from frankly_design.kinds.unary import UnaryKind
from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import (
    BLOCK_KINDS,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

from tests.frankly_protocol.every_kind import FORM, KINDS

TABLE = DenseMechanism(4, ((12, 4), (3, 13)))
OTHER = DenseMechanism(5, ((20, 12), (8, 24)))
SETS = UnaryMechanism(4, 3, 12, 2)
PRODUCT = ProductMechanism((TABLE, DenseMechanism(4, ((10, 3, 3), (2, 7, 7), (2, 7, 7)))))


def test_every_kind_of_a_document_is_counted_and_all_but_forms_are_estimated() -> None:
    mechanisms = {**KINDS, "agreement": FORM}
    assert mechanisms.keys() == BLOCK_KINDS.keys()
    assert {name: type(counted_of(one)).__name__ for name, one in mechanisms.items()} == {
        "dense": "DenseKind",
        "unary": "UnaryKind",
        "subset": "SubsetKind",
        "product": "ProductKind",
        "agreement": "FormKind",
    }
    assert all(kind_of(one).rank > 1 for one in KINDS.values())


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (DenseMechanism, DenseKind),
        (UnaryMechanism, UnaryKind),
        (SubsetMechanism, SubsetKind),
        (ProductMechanism, ProductKind),
    ],
)
def test_a_subclass_has_the_class_of_its_kind(kind: type[Any], expected: type[Any]) -> None:
    class Own(kind):
        """A mechanism of somebody's own."""

    example: Any = next(one for one in KINDS.values() if type(one) is kind)
    assert type(kind_of(Own(*(getattr(example, name) for name in _fields(kind))))) is expected


def _fields(kind: type[Any]) -> list[str]:
    return [one.name for one in fields(kind) if one.init]


@pytest.mark.parametrize(
    ("mechanisms", "expected", "size"),
    [
        ((TABLE,), DenseKind, 2),
        ((TABLE, TABLE), ProductKind, 4),
        ((TABLE, PRODUCT), ProductKind, 12),
        ((TABLE, OTHER), JointKind, 4),  # tables of unequal bits make no product
        ((TABLE, SETS), JointKind, 16),
    ],
)
def test_blocks_together_are_counted_by_all_their_symbols(
    mechanisms: Any, expected: type[Any], size: int
) -> None:
    kind = together(mechanisms)
    assert (type(kind), kind.size) == (expected, size)
    assert sorted({kind.index(key) for key in _keys(kind)}) == list(range(size))


def _keys(kind: Any) -> list[tuple[int, ...]]:
    if isinstance(kind.mechanism, Joint):
        sizes = [block.reports for block in kind.factors]
    else:
        sizes = [factor.reports for factor in kind.factors]
    keys: list[tuple[int, ...]] = [()]
    for reports in sizes:
        keys = [(*key, y) for key in keys for y in range(reports)]
    return keys


def test_a_decoder_that_is_kept_keeps_no_joint_table() -> None:
    """At deficient rank a product is decoded as a whole; its table has up to 2^20 numbers."""
    kind = kind_of(PRODUCT)
    assert kind.rank < kind.answers
    counts = kind.checked({(0, 0): 5, (1, 2): 3})
    assert not kind.evidence(counts, ((1, 1, 1, 0, 0, 0),), None).shares  # type: ignore[arg-type]
    assert "weights" not in vars(kind)


@pytest.mark.parametrize(
    "reports", [[(2, 0)], [(0, -1)], [(0,)], [(0, 1, 1)], [(0.0, 1)], ["01"], [None], [3]]
)
def test_reports_that_a_product_cannot_send_are_refused(reports: list[Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind_of(PRODUCT).count(reports)
    assert (caught.value.code, caught.value.field) == ("counts_invalid", "reports")


def test_reports_of_a_product_are_counted_in_a_plain_mapping() -> None:
    counts = kind_of(PRODUCT).count([(0, 1), (1, 2), (1, 2)])
    assert repr(counts) == "{(0, 1): 1, (1, 2): 2}"
    assert estimate(PRODUCT, counts, targets=[[1, 1, 1, 0, 0, 0]]).n == 3
