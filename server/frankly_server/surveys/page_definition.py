# SPDX-License-Identifier: Apache-2.0
"""Look of a survey's hosted page, and the way back to a panel. None of it is in the signed document."""

import base64
import binascii
import re
from typing import Annotated, Any, Final
from urllib.parse import urlsplit

from frankly_design.requests.fields import ClosedModel, custom, json_schema
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem
from pydantic import BeforeValidator

MAX_LOGO_BYTES: Final = 64 * 1024
DEFAULT_ACCENT: Final = "#0b5c6b"
_COLOUR: Final = re.compile(r"#[0-9a-f]{6}", re.ASCII)
_LOGO: Final = re.compile(r"data:(image/(?:png|jpeg|webp));base64,([A-Za-z0-9+/]+={0,2})", re.ASCII)
MAX_RETURN: Final = 500
_PART: Final = r"[A-Za-z0-9._~:/?\[\]@!$&'()*+,;=%-]*"
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
# Names of hosts without user and without {id}: where people go is decided here, never by a link. Only
# a whole value or segment can be {id}, so that a link cannot complete an escape or a dot segment.
_RETURN: Final = re.compile(
    rf"https://({_LABEL}\.)*(?=[A-Za-z]){_LABEL}(:[0-9]{{1,5}})?"
    rf"([/?]{_PART}((?<=[/?=&])\{{id\}}{_PART})?)?",
    re.ASCII,
)
_CODE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_WANTED: Final = f"a PNG, JPEG or WebP image of at most {MAX_LOGO_BYTES // 1024} KB"


def media_type(image: bytes) -> str | None:
    """Return the media type of a PNG, JPEG or WebP image, by its first bytes; None for anything else."""
    if image.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if image.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    return "image/webp" if (image[:4], image[8:12]) == (b"RIFF", b"WEBP") else None


def logo_text(image: bytes, field: str = "logo") -> str:
    """Return an uploaded image as a `data:` URL. Raises InvalidInput(definition_invalid)."""
    kind = media_type(image)
    if kind is None or len(image) > MAX_LOGO_BYTES:
        raise InvalidInput(Problem.DEFINITION_INVALID, f"choose {_WANTED}", field)
    return f"data:{kind};base64,{base64.b64encode(image).decode('ascii')}"


def image_of(logo: str) -> tuple[str, bytes] | None:
    """Return the media type and the bytes of a logo's `data:` URL; None if it is not one."""
    match = _LOGO.fullmatch(logo)
    if match is None:
        return None
    try:
        image = base64.b64decode(match[2], validate=True)
    except binascii.Error:
        return None
    is_logo = len(image) <= MAX_LOGO_BYTES and media_type(image) == match[1]
    return (match[1], image) if is_logo else None


def _logo(value: Any) -> str:
    if not isinstance(value, str) or image_of(value) is None:
        raise custom(Problem.DEFINITION_INVALID, f"give {_WANTED}, as data:image/png;base64,…")
    return value


def _colour(value: Any) -> str:
    if not isinstance(value, str) or not _COLOUR.fullmatch(value.lower()):
        raise custom(Problem.DEFINITION_INVALID, f"write a colour such as {DEFAULT_ACCENT}")
    return value.lower()


def _return_to(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_RETURN or not _is_return(value):
        raise custom(
            Problem.DEFINITION_INVALID,
            f"write an address such as https://panel.example/done?id={{id}}: https, at most "
            f"{MAX_RETURN} ASCII characters, without spaces, user name and #; {{id}} at most once, "
            "after one of / ? = & in the path or the query",
        )
    return value


def _is_return(value: str) -> bool:
    if not _RETURN.fullmatch(value):
        return False
    try:
        return urlsplit(value).port != 0
    except ValueError:  # a port above 65535, or brackets that browsers read otherwise
        return False


def _code(value: Any) -> str:
    if not isinstance(value, str) or not _CODE.fullmatch(value):
        raise custom(
            Problem.DEFINITION_INVALID,
            "write a code such as C1A2B3, as text: 1 to 64 of A-Z, a-z, 0-9, - and _",
        )
    return value


Colour = Annotated[
    str, BeforeValidator(_colour), json_schema("A colour.", pattern="^#[0-9A-Fa-f]{6}$")
]
Logo = Annotated[
    str,
    BeforeValidator(_logo),
    json_schema(
        f"A logo: {_WANTED}, as a data: URL.", pattern="^data:image/(png|jpeg|webp);base64,"
    ),
]

ReturnTo = Annotated[
    str,
    BeforeValidator(_return_to),
    json_schema(
        "An https address; {id} stands for the panel's id of a person.",
        pattern=r"^https://[!-~]*$",
        maxLength=MAX_RETURN,
    ),
]
CompletionCode = Annotated[
    str, BeforeValidator(_code), json_schema("A code.", pattern="^[A-Za-z0-9_-]{1,64}$")
]


class PageDefinition(ClosedModel):
    """The look of the hosted page. A change shows at once, without a new version.

    accent : colour of buttons and pictures; the page uses the nearest shades with enough contrast.
    logo : shown above the survey.
    return_to : where a panel wants people back, shown after the answer. {id}, at most once and after
    the host, becomes what follows `&id=` in the fragment of a person's link, or nothing.
    completion_code : shown after the answer, for people to type at the panel.
    """

    accent: Colour | None = None
    logo: Logo | None = None
    return_to: ReturnTo | None = None
    completion_code: CompletionCode | None = None
