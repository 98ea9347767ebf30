# SPDX-License-Identifier: Apache-2.0
"""Labels of choices in XLSForms that are no ordinary answers: refusals, and don't know.

Only labels count. Names such as `declined`, and codes such as 99, often stand for ordinary answers.
"""

import re
from collections.abc import Mapping
from typing import Final

from frankly_server.surveys.fields import folded
from frankly_server.surveys.question_definition import usual_label

_SAY: Final = r"(?:say|answer|respond|disclose)"
_QUESTION: Final = r"(?: (?:the|this|that) questions?)?"
_CLEAR: Final = re.compile(
    rf"(?:i |i would |i'd |would )?(?:(?:prefer not to|rather not) {_SAY}"
    rf"|(?:refuse[sd]?|declined?|declines) to {_SAY}"
    rf"|(?:do|does) ?(?:not|n't) (?:want|wish) to {_SAY}){_QUESTION}"
    r"|(?:je )?(?:préfère|prefere|prefère) ne pas (?:répondre|dire|le dire)"
    r"|(?:je )?ne (?:souhaite|veut|veux|désire) pas (?:répondre|le dire)"
    r"|(?:(?:je |a )?refus[eé]? de|refuse de) (?:répondre|le dire)"
    r"|prefier[oe] no (?:responder|contestar|decir|decirlo)"
    r"|no (?:quiere|quiero|desea|deseo) (?:responder|contestar)"
    r"|se (?:niega|rehúsa|rehusa) a (?:responder|contestar)"
    r"|(?:prefiro|prefere) não (?:responder|dizer|informar)"
    r"|não (?:quer|quero|deseja) responder|recus(?:ou|a)(?:-se)? (?:a )?responder"
    r"|(?:ich )?möchte (?:ich )?nicht (?:sagen|antworten|beantworten)|keine angabe"
)
_BARE: Final = re.compile(
    r"refuse[sd]?|refusal|refus|no answer|pas de réponse|sin respuesta|no (?:responde|contesta)"
    r"|sem resposta|keine antwort"
)
_REMARK: Final = re.compile(r"(?<=\w) ?[(\[].*")
_EDGES: Final = " .,;:!*()[]-–—…"
_UNKNOWN: Final = re.compile(
    r"\b(?:(?:do|does) ?(?:not|n't) know|dont know|dk|unsure|not sure|not applicable|n/?a"
    r"|(?:ne )?sa(?:is|it) pas|no (?:sabe|sé|aplica)|não (?:sabe|sei|se aplica)|weiß nicht"
    r"|non applicable|sans objet|no opinion)\b"
)


def _read(text: str) -> str:
    return folded(text).replace("’", "'")


def is_refusal(label: Mapping[str, str]) -> bool:
    """Return True if a label, in any language, says that a person does not answer."""
    usual = usual_label("no_answer", tuple(label))
    for tag, text in label.items():
        read = _read(text)
        if read == _read(usual[tag]) or _CLEAR.fullmatch(_REMARK.sub("", read).strip(_EDGES)):
            return True
    return is_bare_refusal(label)


def is_bare_refusal(label: Mapping[str, str]) -> bool:
    """Return True for a label such as Refused, which can also be an answer (of an office)."""
    return any(_BARE.fullmatch(_read(text).strip(_EDGES)) for text in label.values())


def is_no_point(label: Mapping[str, str]) -> bool:
    """Return True for don't know and the like, which have no place on a scale."""
    return any(_UNKNOWN.search(_read(text)) for text in label.values())
