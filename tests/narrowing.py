# SPDX-License-Identifier: Apache-2.0
"""Assertions that narrow a value's type for the type checker."""

from typing import TypeVar

from frankly_protocol.mechanisms import DenseMechanism, Mechanism

T = TypeVar("T")


def dense_of(mechanism: Mechanism) -> DenseMechanism:
    """Return the mechanism as the dense mechanism that the test expects; raise AssertionError for
    another kind."""
    assert isinstance(mechanism, DenseMechanism)
    return mechanism


def present(value: T | None) -> T:
    """Return the value; raise AssertionError if it is None."""
    assert value is not None
    return value
