# SPDX-License-Identifier: Apache-2.0
"""Randomising mechanisms as integers: one file, or package, per runtime kind.

Every kind has the attributes `kind`, `bits`, `answers`, `reports` and `sends_unchanged`. It draws a
symbol with `sample`, gives exact chances with `probability`, and reads and writes its symbols
(`check_symbol`, `symbol_json`) and parameters (`from_params`, `params_json`). The truth is the
number of an answer; for the agreement kind, the position of the choice of every question.

A kind also says what a block of it needs (`counts_of`, `truth_of`, `MOST_QUESTIONS`), what a report
tells (`fits`, `guess`, `named`) and what an explanation says of it (`sentences`, `symbol_shape`).
Only how its promises are verified is elsewhere, in `frankly_protocol.audit.kinds`.
"""

from frankly_protocol.mechanisms.agreement import AgreementMechanism
from frankly_protocol.mechanisms.base import Symbol
from frankly_protocol.mechanisms.dense import DenseMechanism
from frankly_protocol.mechanisms.expansion import (
    BLOCK_KINDS,
    KINDS,
    AnyMechanism,
    Mechanism,
    as_dense,
    columns,
)
from frankly_protocol.mechanisms.product import ProductMechanism
from frankly_protocol.mechanisms.subset import SubsetMechanism
from frankly_protocol.mechanisms.unary import UnaryMechanism

__all__ = [
    "BLOCK_KINDS",
    "KINDS",
    "AgreementMechanism",
    "AnyMechanism",
    "DenseMechanism",
    "Mechanism",
    "ProductMechanism",
    "SubsetMechanism",
    "Symbol",
    "UnaryMechanism",
    "as_dense",
    "columns",
]
