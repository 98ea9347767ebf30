# SPDX-License-Identifier: Apache-2.0
"""Randomising mechanisms as integers: one file, or package, per runtime kind.

Every kind has, documented here and not in its class:

bits, answers, reports : reports is the number of symbols that can be sent. The truth is the number
of an answer; for the agreement kind, the position of the choice of every question.
sends_unchanged : True if every report has a single possible truth.
sample, probability : draw the symbol to send; the exact chance Q(symbol|truth). symbols : every
symbol that can be sent, of which there may be very many.
check_symbol : read the JSON form of a symbol. Raises InvalidInput(y_type or symbol_unknown), which
never repeats the value. symbol_json : write it. longest_symbol_json : reports are padded to its
length.
from_params, params_json : read and write the parameters. Raises InvalidInput(weights_invalid); for a
bad value, the error's field is the bare name of the parameter, without the prefix `field`.
counts_of, truth_of, MOST_QUESTIONS : what a block of it needs. fits, guess, named : what a report
tells. sentences, symbol_shape : what an explanation says of it.

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
