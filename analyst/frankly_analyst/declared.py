# SPDX-License-Identifier: Apache-2.0
"""Declarations: dataclasses from which other representations of a request or row are generated.

The metadata of a field:

- `description`: for help, docstrings and OpenAPI;
- `choices`: its legal values, if they are few;
- `schema`: JSON schema of its text in a query, in addition to choices and default;
- `json`: its type in a result, if it differs.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import wraps
from inspect import getdoc, signature
from types import NoneType
from typing import Any, Concatenate, ParamSpec, TypeVar, get_args, get_type_hints

P = ParamSpec("P")
Owner = TypeVar("Owner")
Declared = TypeVar("Declared")
Result = TypeVar("Result")
Method = Callable[[Owner, str, Declared], Result]


def kinds(declared: type) -> Mapping[str, Any]:
    """Return each field's type without None; for a tuple or union, its first type."""
    return {
        name: next((kind for kind in get_args(hint) if kind is not NoneType), hint)
        for name, hint in get_type_hints(declared).items()
    }


def described(declared: type[Declared]) -> type[Declared]:
    """Append the description of every field to a dataclass's docstring."""
    declared.__doc__ = _described(declared, declared)
    return declared


def takes_fields_of(
    declared: Callable[P, Declared],
) -> Callable[[Method[Owner, Declared, Result]], Callable[Concatenate[Owner, str, P], Result]]:
    """Return a decorator for methods (self, survey, instance of `declared`).

    The decorated method takes the dataclass's fields as arguments instead of the instance.
    """

    def decorate(
        method: Method[Owner, Declared, Result],
    ) -> Callable[Concatenate[Owner, str, P], Result]:
        @wraps(method)
        def call(self: Owner, survey: str, *args: P.args, **keywords: P.kwargs) -> Result:
            return method(self, survey, declared(*args, **keywords))

        of_method, of_fields = signature(method), signature(declared)
        owner, survey, _ = of_method.parameters.values()
        # `help` and the API page show this signature.
        vars(call)["__signature__"] = of_method.replace(
            parameters=[owner, survey, *of_fields.parameters.values()]
        )
        call.__doc__ = _described(method, declared)
        return call  # type: ignore[return-value]  # `survey` may be given by name as well

    return decorate


def _described(documented: Any, declared: Any) -> str:
    lines = [f"{item.name} : {item.metadata['description']}" for item in fields(declared)]
    return "\n".join([getdoc(documented) or "", "", *lines])
