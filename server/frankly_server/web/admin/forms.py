# SPDX-License-Identifier: Apache-2.0
"""Reading of posted forms: a form with a field that nothing uses is refused, and changes nothing.

`takes` refuses fields that a view does not list, `refuse_unused` fields whose choice is not made, and
no reader shortens or replaces a value.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar

from flask import request
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

View = TypeVar("View", bound=Callable[..., Any])
CREDENTIAL_CHARACTERS: Final = 20_000
"""Maximum length of a WebAuthn response in a form; about 1,500 are usual without attestation."""
_LINES_CHARACTERS: Final = 100_000
"""Maximum length of a list with a line for each of at most 1,000 choices."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}", re.ASCII)


def takes(*names: str, many: Collection[str] = ()) -> Callable[[View], View]:
    """Return a decorator for views of posted forms that refuses all other fields (see `require_only`).

    It comes last, so that people without access get the same answer for every form.
    """

    def wrap(view: View) -> View:
        @wraps(view)
        def reading(*arguments: Any, **named: Any) -> Any:
            require_only(*names, many=many)
            return view(*arguments, **named)

        reading.takes = (*names, *many)  # type: ignore[attr-defined]  # a test compares the pages
        return reading  # type: ignore[return-value]

    return wrap


def require_only(*names: str, many: Collection[str] = ()) -> None:
    """Raise InvalidInput unless the form has no fields but these: field_unknown, bad_request.

    names : fields that occur at most once, besides the form's token. many : fields that may repeat.
    A name that ends with a hyphen stands for all fields that begin with it (see `by_key`).
    """
    counts = Counter(name for name, _ in request.form.items(multi=True))
    counts.update(name for name, _ in request.files.items(multi=True))
    for name, count in counts.items():
        if _is_listed(name, many):
            continue
        if not _is_listed(name, ("csrf", *names)):
            raise _unknown(name)
        if count > 1:
            raise InvalidInput(Problem.BAD_REQUEST, "this field is given twice", name)


def _is_listed(name: str, names: Collection[str]) -> bool:
    return name in names or any(name.startswith(listed) for listed in names if listed.endswith("-"))


def _unknown(name: str) -> InvalidInput:
    # Any text can be a name, so only names that look like those of the pages are repeated.
    called = f"the field {name}" if _NAME.fullmatch(name) else "a field"
    return InvalidInput(
        Problem.FIELD_UNKNOWN,
        f"nothing was changed, because {called} has no use here: reload the page and fill it in again",
        "form",
    )


def refuse_unused(names: Iterable[str], shown: Mapping[str, str], use: str) -> None:
    """Raise InvalidInput(unsupported) if one of these fields, which no choice uses, was filled in.

    shown : values with which the page shows the fields. use : the choice that would use them.
    """
    for name in names:
        # Browsers remove line breaks of a value in a field of one line.
        if _text(name) and _unspaced(_text(name)) != _unspaced(shown.get(name, "")):
            raise InvalidInput(
                Problem.UNSUPPORTED,
                f"this is filled in, but counts only with {use}: choose that, or remove what you entered",
                name,
            )


def field(name: str, limit: int = 4000) -> str:
    """Return a field's text, stripped and with line feeds only; "" if the form lacks it.

    Raises InvalidInput(field_type) for more than `limit` characters.
    """
    text = _text(name)
    if len(text) > limit:
        raise InvalidInput(Problem.FIELD_TYPE, f"write at most {limit:,} characters", name)
    return text


def _text(name: str) -> str:
    return request.form.get(name, "").replace("\r\n", "\n").strip()


def _unspaced(text: str) -> str:
    return "".join(text.split())


def lines(name: str) -> list[str]:
    """Return the lines of a field, stripped and without empty ones."""
    return [line.strip() for line in field(name, _LINES_CHARACTERS).split("\n") if line.strip()]


def choice(name: str, allowed: Collection[str], default: str | None = None) -> str:
    """Return a field's value, one of `allowed`; the default, if any, for an empty or missing field.

    Raises InvalidInput(field_type).
    """
    text = field(name)
    if default is not None and not text:
        return default
    if text not in allowed:
        raise InvalidInput(Problem.FIELD_TYPE, f"choose one of {', '.join(allowed)}", name)
    return text


def ticked(name: str) -> bool:
    """Return True if a checkbox is ticked. Raises InvalidInput(field_type) for another value."""
    return choice(name, ("yes",), "") == "yes"


def by_key(prefix: str, keys: Collection[str]) -> dict[str, str]:
    """Return the texts of the fields `prefix` + key.

    Raises InvalidInput(field_unknown) if the form has a field with this prefix and another key.
    """
    for name in request.form:
        if name.startswith(prefix) and name.removeprefix(prefix) not in keys:
            raise _unknown(name)
    return {key: field(prefix + key) for key in keys}
