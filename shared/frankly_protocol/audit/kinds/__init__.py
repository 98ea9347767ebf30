# SPDX-License-Identifier: Apache-2.0
"""The verifier of every kind of mechanism: one class for each way of verifying."""

from collections.abc import Mapping
from typing import Any, Final

from frankly_protocol.audit.kinds.agreement import AgreementVerifier
from frankly_protocol.audit.kinds.products import ProductVerifier
from frankly_protocol.audit.kinds.sets import SetVerifier
from frankly_protocol.audit.kinds.tables import TableVerifier
from frankly_protocol.audit.kinds.verifier import Verifier
from frankly_protocol.mechanisms import (
    AgreementMechanism,
    AnyMechanism,
    DenseMechanism,
    ProductMechanism,
    SubsetMechanism,
    UnaryMechanism,
)

_VERIFIERS: Final[Mapping[str, Verifier[Any]]] = {
    DenseMechanism.kind: TableVerifier(),
    UnaryMechanism.kind: SetVerifier(),
    SubsetMechanism.kind: SetVerifier(),
    ProductMechanism.kind: ProductVerifier(),
    AgreementMechanism.kind: AgreementVerifier(),
}


def verifier_of(mechanism: AnyMechanism) -> Verifier[Any]:
    """Return the verifier of a mechanism's kind; a subclass has the one of its kind."""
    return _VERIFIERS[mechanism.kind]
