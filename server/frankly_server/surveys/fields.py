# SPDX-License-Identifier: Apache-2.0
"""Field types specific to survey files: texts, languages, times, numbers of reports."""

import unicodedata
from datetime import datetime
from typing import Annotated, Any, Final

from frankly_design.requests.fields import (
    NUMBER,
    anchored,
    custom,
    json_schema,
    nats,
    whole,
    whole_schema,
)
from frankly_protocol.audit.bounds import MAX_EPSILON, MIN_EPSILON
from frankly_protocol.clock import format_time, parse_time
from frankly_protocol.problems import Problem
from frankly_protocol.schema import LANGUAGE, unsafe_character
from pydantic import AfterValidator, BeforeValidator, PlainSerializer

# Joiners, variation selectors and the soft hyphen, which are invisible.
_IGNORABLE: Final = "\u200c\u200d\ufe0e\ufe0f\u00ad"


def folded(label: str) -> str:
    """Return a text that is equal for labels that are easily confused.

    Case, width, composition of accents, invisible characters and spacing are ignored; letters of
    different scripts that look alike are not.
    """
    # Normalised twice, because casefold can produce text that is not in NFKC.
    normal = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", label).casefold())
    return " ".join("".join(char for char in normal if char not in _IGNORABLE).split())


def _language(value: Any) -> str:
    if not isinstance(value, str) or not LANGUAGE.fullmatch(value):
        raise custom(Problem.DEFINITION_INVALID, "write a language tag such as en or pt-BR")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise custom(Problem.FIELD_TYPE, "give a text that is not empty")
    if len(value) > 4000:
        raise custom(Problem.DEFINITION_INVALID, "a text has at most 4000 characters")
    unsafe = unsafe_character(value)
    if unsafe:
        raise custom(
            Problem.TEXT_CHARACTERS,
            f"the text contains {unsafe}, which cannot be shown safely; remove it",
        )
    return value


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        moment = parse_time(value if isinstance(value, str) else "")
    except ValueError as error:
        raise custom(Problem.DEFINITION_INVALID, str(error)) from None
    if not 2000 <= moment.year <= 2999:
        raise custom(Problem.DEFINITION_INVALID, "write a year from 2000 to 2999")
    return moment


Language = Annotated[
    str, BeforeValidator(_language), json_schema("A language tag.", pattern=anchored(LANGUAGE))
]
Text = Annotated[str, BeforeValidator(_text), json_schema("A text.", minLength=1, maxLength=4000)]
Reports = Annotated[
    int,
    BeforeValidator(lambda value: whole(value, 2)),
    whole_schema("A number of reports, at least 2.", 2),
]
Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    PlainSerializer(format_time, return_type=str),
    json_schema("A UTC time: 2026-12-31T23:59:59Z.", pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"),
]
Budget = Annotated[
    str,
    BeforeValidator(nats("budget", MIN_EPSILON, 6 * MAX_EPSILON)),
    json_schema(f"Nats, {float(MIN_EPSILON):g} to {6 * MAX_EPSILON}.", NUMBER),
]
LocalisedText = Annotated[
    dict[Language, Text], AfterValidator(lambda texts: dict(sorted(texts.items())))
]
