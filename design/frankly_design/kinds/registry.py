# SPDX-License-Identifier: Apache-2.0
"""The class of each kind of mechanism: the only list of kinds on this side of the protocol."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, cast, overload

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    Mechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)
from frankly_protocol.problems import Problem

from frankly_design.kinds.dense import DenseKind
from frankly_design.kinds.form import FormKind, PartsTogether
from frankly_design.kinds.joint import Joint, JointKind, Source
from frankly_design.kinds.kind import Counted, Estimable, FactorKind, Kind
from frankly_design.kinds.parts import PartTable, part_of, part_table
from frankly_design.kinds.product import ProductKind
from frankly_design.kinds.set_kind import SetKind
from frankly_design.kinds.set_law import SetMechanism
from frankly_design.kinds.subset import SubsetKind
from frankly_design.kinds.unary import UnaryKind

_FACTORS: Final[dict[type[Any], type[FactorKind]]] = {
    DenseMechanism: DenseKind,
    PartTable: DenseKind,
    SubsetMechanism: SubsetKind,
    UnaryMechanism: UnaryKind,
}
_KINDS: Final[dict[type[Any], type[Kind]]] = {**_FACTORS, ProductMechanism: ProductKind}
_COUNTED: Final[dict[type[Any], type[Counted]]] = {**_KINDS, AgreementMechanism: FormKind}


_Class = TypeVar("_Class", bound=Counted)


def _of(kinds: Mapping[type[Any], type[_Class]], mechanism: AnyMechanism) -> type[_Class]:
    """Return the class of a mechanism's kind; a subclass has the one of its kind."""
    return next(kinds[kind] for kind in type(mechanism).__mro__ if kind in kinds)


def counted_of(mechanism: AnyMechanism) -> Counted:
    """Return how symbols of a block's mechanism are counted."""
    return _of(_COUNTED, mechanism)(mechanism)


@overload
def kind_of(mechanism: DenseMechanism) -> DenseKind: ...
@overload
def kind_of(mechanism: ProductMechanism) -> ProductKind: ...
@overload
def kind_of(mechanism: SetMechanism) -> SetKind: ...
@overload
def kind_of(mechanism: Mechanism) -> Kind: ...
def kind_of(mechanism: Mechanism) -> Kind:
    """Return a mechanism with everything that differs by its kind."""
    return _of(_KINDS, mechanism)(mechanism)


def estimable_of(source: Source) -> Estimable:
    """Return the counts and the decoder of one mechanism, or of several together."""
    if isinstance(source, Joint):
        return JointKind(source, [_of(_FACTORS, block)(block) for block in source.blocks])
    return kind_of(source)


def together(mechanisms: Sequence[Mechanism]) -> Estimable:
    """Return the counts and the decoder of several blocks of one document.

    Raises InvalidInput: unsupported for parts of a form with other blocks or for too many answers,
    not_identifiable for parts of a form that no report shows together.
    """
    if len(mechanisms) == 1:
        return kind_of(mechanisms[0])
    parts = [part for part in map(part_of, mechanisms) if part is not None]
    if len({id(part.form) for part in parts}) < len(parts):
        return PartsTogether(_joint_table(parts, len(mechanisms)), parts)
    factors = tuple(factor for mechanism in mechanisms for factor in kind_of(mechanism).factors)
    tables = [factor for factor in factors if type(factor) is DenseMechanism]
    # An answer in the clear has a table of fewer bits, which a product does not allow.
    if len(tables) == len(factors) and len({table.bits for table in tables}) == 1:
        return ProductKind(ProductMechanism(tuple(tables)))
    return estimable_of(Joint(cast("tuple[DenseMechanism | SetMechanism, ...]", factors)))


def _joint_table(parts: Sequence[PartTable], blocks: int) -> PartTable:
    """Return the table of parts of one form; blocks : number of blocks that are asked for."""
    if len({id(part.form) for part in parts}) > 1 or len(parts) < blocks:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "several questions of one form cannot be combined with others: name fewer",
            "targets",
        )
    return part_table(parts[0].form, tuple(i for part in parts for i in part.parts))
