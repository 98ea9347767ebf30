# SPDX-License-Identifier: Apache-2.0
"""Errors that a call must raise, returned so that one line can compare them."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import pytest
from frankly_protocol.errors import FranklyError

P = ParamSpec("P")
E = TypeVar("E", bound=BaseException)


def refusal(kind: type[E], act: Callable[P, object], *args: P.args, **options: P.kwargs) -> E:
    """Return the exception of this type that the call raises; fail if it raises none."""
    with pytest.raises(kind) as caught:
        act(*args, **options)
    return caught.value


def code_and_field(
    kind: type[FranklyError], act: Callable[P, object], *args: P.args, **options: P.kwargs
) -> tuple[str, str | None]:
    """Return the code and the field of the error that the call raises; fail if it raises none."""
    error = refusal(kind, act, *args, **options)
    return error.code, error.field
