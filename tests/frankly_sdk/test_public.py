# SPDX-License-Identifier: Apache-2.0
"""What an app can name: an installed SDK has its own copy of the protocol, under a private name."""

import inspect
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import frankly_sdk
import frankly_sdk.aio
import frankly_sdk.testing
import frankly_sdk.tokens

PUBLIC = (frankly_sdk, frankly_sdk.aio, frankly_sdk.testing, frankly_sdk.tokens)


def _classes(hint: Any) -> Iterator[type]:
    if isinstance(hint, type):
        yield hint
    for argument in get_args(hint):
        yield from _classes(argument)


def _signatures(public: Any) -> Iterator[Any]:
    if inspect.isfunction(public):
        yield public
    elif inspect.isclass(public):
        for name, member in inspect.getmembers(public):
            if not name.startswith("_") or name == "__init__":
                function = member.fget if isinstance(member, property) else member
                if inspect.isroutine(function) and hasattr(function, "__annotations__"):
                    yield function


def test_every_type_in_a_public_signature_is_exported() -> None:
    """In those of the SDK's own classes and functions, and in the fields of a question."""
    exported = {getattr(module, name) for module in PUBLIC for name in module.__all__}
    used = {
        (found, signature.__qualname__)
        for module in PUBLIC
        for name in module.__all__
        if (public := getattr(module, name)) is frankly_sdk.Question
        or getattr(public, "__module__", "").startswith("frankly_sdk")
        for signature in _signatures(public)
        for hint in get_type_hints(signature).values()
        for found in _classes(hint)
    }
    assert (frankly_sdk.Choice, "Question.__init__") in used
    assert len(used) > 50
    unnamed = {
        (found.__qualname__, where)
        for found, where in used
        if found.__module__.startswith("frankly_protocol") and found not in exported
    }
    assert unnamed == set()
