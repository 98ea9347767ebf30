# SPDX-License-Identifier: Apache-2.0
"""Mechanism in a request: weights and bits, or kind and parameters as in a document."""

from typing import Annotated, Any

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms import KINDS, DenseMechanism, Mechanism
from frankly_protocol.problems import Problem
from frankly_protocol.schema import REQUEST
from pydantic import PlainValidator, Strict, WithJsonSchema

from frankly_design.requests.fields import RequestModel, rows_schema

_TABLE, _PARAMETERS = ("weights", "bits"), ("params",)


def _weights(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(REQUEST.whole(w, f"weights[{x}][{y}]") for y, w in enumerate(row))
        for x, row in enumerate(REQUEST.table(value, "weights"))
    )


def _kind(value: Any) -> str:
    if not isinstance(value, str) or value not in KINDS:
        raise InvalidInput(Problem.FIELD_TYPE, f"the kinds are {', '.join(KINDS)}", "kind")
    return value


class MechanismFields(RequestModel):
    """A mechanism: weights (whole numbers) and bits for the kind dense, params for others."""

    kind: Annotated[
        str, PlainValidator(_kind), WithJsonSchema({"type": "string", "enum": list(KINDS)})
    ] = "dense"
    weights: Annotated[
        tuple[tuple[int, ...], ...] | None,
        PlainValidator(_weights),
        WithJsonSchema(rows_schema(type="integer", minimum=0)),
    ] = None
    bits: Annotated[int, Strict()] | None = None
    params: Annotated[Any, WithJsonSchema({"type": "object"})] = None

    def source(self) -> Mechanism:
        """Return the mechanism. Raises InvalidInput, naming the field."""
        present = self.model_fields_set
        is_table = self.kind == "dense"
        needed, foreign = (_TABLE, _PARAMETERS) if is_table else (_PARAMETERS, _TABLE)
        # Two descriptions could contradict each other, so only one is allowed.
        for name in foreign:
            if name in present:
                raise InvalidInput(
                    Problem.FIELD_UNKNOWN,
                    f"a mechanism of the kind {self.kind} has {' and '.join(needed)}",
                    name,
                )
        for name in needed:
            if name not in present:
                raise InvalidInput(Problem.FIELD_MISSING, "this field is needed", name)
        if not is_table:
            return KINDS[self.kind].from_params(self.params, "params")
        return DenseMechanism(REQUEST.whole(self.bits, "bits"), self.weights or ())
