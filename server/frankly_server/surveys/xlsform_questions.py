# SPDX-License-Identifier: Apache-2.0
"""Questions of XLSForms as questions of a survey file, and the reasons for those that are left."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from math import ceil, floor
from typing import Any, Final

from frankly_protocol.mechanisms.agreement import MAX_QUESTIONS
from frankly_protocol.questions import NO, YES
from frankly_protocol.schema import ID

from frankly_server.surveys.definition import MAX_FEW_CHOICES
from frankly_server.surveys.editing import slug
from frankly_server.surveys.fields import folded
from frankly_server.surveys.question_definition import usual_label
from frankly_server.surveys.xlsform_labels import is_bare_refusal, is_no_point, is_refusal
from frankly_server.surveys.xlsform_texts import VALUE, Languages
from frankly_server.surveys.xlsform_workbook import Row

_PARTS: Final = 5
_MOST_LISTED: Final = 200
"""Choices of a list that are read, for those that remain after equal ones are merged."""
_MOST_STEPS: Final = 21
_MOST: Final = 10**9
_APART: Final = 2
"""Least distance of the bounds of a number with fractions, of which people enter none."""
_NUMBER: Final = r"-?\d{1,10}(?:\.\d{1,6})?"
_BOUND: Final = re.compile(rf"\.\s*(<=|>=|<|>)\s*({_NUMBER})(?![\d.])")
_OTHER: Final = {
    "ar": "أخرى",
    "de": "Anderes",
    "es": "Otro",
    "fr": "Autre",
    "hi": "अन्य",
    "it": "Altro",
    "ne": "अन्य",
    "nl": "Anders",
    "pt": "Outro",
    "sw": "Nyingine",
}
_NOT_TAKEN: Final = {
    "choice_filter": "all choices are offered: the filter is not taken over",
    "constraint": "its constraint is not taken over",
    "default": "no answer is chosen beforehand: its default is not taken over",
}
_SHUFFLED: Final = re.compile(r"(?i)\brandomize\s*=\s*(?:true|yes|1)\b")
_CLOSE: Final = "its numbers are less than 2 apart, and people enter whole numbers only"
_WHOLE: Final = "people enter whole numbers only, without fractions"
_TEXT: Final = "free text cannot be protected: offer choices"
_DATE: Final = "a date or time is too precise to protect: offer periods as choices"
_PLACE: Final = "a position names the place of a person: offer regions as choices"
_FILE: Final = "a recording or file cannot be protected"
_DEVICE: Final = "it describes the device or the interview, which Frankly never collects"
_COMPUTED: Final = "a computed value is no answer: compute it from the estimates"
_OUTSIDE: Final = "it loads outside data and asks nothing"
LEFT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("text", "string", "email"), _TEXT),
    **dict.fromkeys(("date", "time", "datetime", "date_time"), _DATE),
    **dict.fromkeys(("geopoint", "geotrace", "geoshape", "gps", "location", "osm"), _PLACE),
    **dict.fromkeys(("image", "photo", "picture", "audio", "video", "file", "signature"), _FILE),
    **dict.fromkeys(
        (
            *("start", "end", "today", "deviceid", "device_id", "imei", "simserial", "sim_id"),
            *("subscriberid", "subscriber_id", "phonenumber", "phone_number", "username", "audit"),
            *("start_time", "end_time", "start_geopoint", "background_audio", "devicephonenum"),
            *("background_geopoint", "caseid", "enumerator", "text_audit", "audio_audit"),
            *("speed_violations_count", "speed_violations_list", "speed_violations_audit"),
            *("sensor_statistic", "sensor_stream", "comments"),
        ),
        _DEVICE,
    ),
    **dict.fromkeys(("calculate", "calculate_here", "hidden"), _COMPUTED),
    **dict.fromkeys(("csv_external", "xml_external"), _OUTSIDE),
    "note": "a note asks nothing: write what matters into the question after it",
    "barcode": "a code names a person or a thing, and cannot be protected",
    "acknowledge": "a mark that something was read is no answer: ask a question with choices",
    "trigger": "a mark that something was read is no answer: ask a question with choices",
    "rank": "an order of choices is not taken over: ask which one comes first",
    "select_one_external": "its choices are in another file: list them in the sheet choices",
    "from_file": "its choices are in another file: list them in the sheet choices",
    "integer": "a number needs a smallest and a largest value in its constraint, to become ranges",
}
"""Why a type of question is left, by its name without add … prompt and q …"""
UNKNOWN: Final = "this type of question is not known"


class Left(Exception):
    """A row that is not taken over; its text is the reason."""


@dataclass(slots=True)
class Made:
    """A question of a survey file, without its rule.

    named : id of the choice or box by its name in the form. changes : what differs from the form.
    offers : whether “Prefer not to say” was added, because it may be left unanswered.
    """

    question: dict[str, Any]
    named: dict[str, str]
    changes: list[str] = field(default_factory=list)
    offers: bool = False


class Lists:
    """The lists of choices of a form; each list's labels are read once, whoever uses it."""

    def __init__(self, choices: Sequence[Row], languages: Languages) -> None:
        self._rows: dict[str, list[Row]] = {}
        self._read: dict[str, list[tuple[str, dict[str, str]]]] = {}
        self._languages = languages
        for row in choices:
            self._rows.setdefault(row["list_name"], []).append(row)

    def size(self, name: str) -> int:
        """Return the number of choices of a list; 0 if there is no such list."""
        return len(self._rows.get(name, ()))

    def unlabelled(self, name: str) -> int:
        """Return the number of choices of a list that have no label."""
        return sum(not row.labels for row in self._rows.get(name, ()))

    def labels(self, name: str) -> list[tuple[str, dict[str, str]]]:
        """Return name and label of the choices of a list. Raises Left."""
        if name not in self._read:
            rows = self._rows.get(name, [])
            if any(VALUE.search(text) for row in rows for text in row.labels.values()):
                raise Left("a choice contains another answer (${…}), which is not known here")
            text = self._languages.text
            self._read[name] = [(row["name"], text(row.labels, row["name"])) for row in rows]
        return self._read[name]


@dataclass(frozen=True, slots=True)
class Kind:
    """The type of a row: a key of LEFT, or one, multiple, range, number, decimal, group and so on."""

    name: str
    list_name: str = ""
    or_other: bool = False


def identifier(name: str, used: Collection[str], most: int) -> str:
    """Return an id that keeps a name if it can, of at most `most` characters and not in `used`."""
    wanted = name.strip().lower()
    # As for ranges: an id cannot begin with a minus sign.
    wanted = re.sub(r"^-(?=\d)", "m", wanted)
    if ID.fullmatch(wanted) and len(wanted) <= most and wanted not in used:
        return wanted
    base = slug(wanted)[: most - 4].strip("-") or "q"
    numbered = (base if n == 1 else f"{base}-{n}" for n in range(1, 10**4))
    return next(one for one in numbered if one not in used)


def question_of(row: Row, kind: Kind, lists: Lists, languages: Languages, name: str) -> Made:
    """Return the question of a row under the id `name`. Raises Left."""
    if any(VALUE.search(text) for text in row.labels.values()):
        raise Left("its text contains another answer (${…}), which is not known here")
    text = languages.text(row.labels)
    if not text:
        raise Left("it has no text")
    if kind.name in ("range", "number", "decimal"):
        made = _number(row, kind, languages)
    else:
        made = _select(row, kind, lists, languages, name)
    made.question = {"id": name, "text": text} | made.question
    key = "boxes" if "boxes" in made.question else "choices"
    if not _is_yes(row["required"]) and all("role" not in one for one in made.question[key]):
        _add_role(made.question, key, "no_answer", languages.tags)
        made.offers = True
    return made


def skippable(question: dict[str, Any], tags: Sequence[str]) -> dict[str, Any]:
    """Return a copy of a question with the choice, or the box, for whoever is not asked."""
    copy = dict(question)
    key = "boxes" if "boxes" in copy else "choices"
    copy[key] = list(copy[key])
    _add_role(copy, key, "not_applicable", tags)
    return copy


def _add_role(question: dict[str, Any], key: str, role: str, tags: Sequence[str]) -> None:
    used = [one["id"] for one in question[key]]
    most = 64 if key == "choices" else 63 - len(question["id"])
    new = identifier(role.replace("_", "-"), used, most)
    label = usual_label(role, tags)
    question[key].append({"id": new, "label": label, "role": role})


def _is_yes(required: str) -> bool:
    return required.lower().removesuffix("()") in ("yes", "true", "1")


def _select(row: Row, kind: Kind, lists: Lists, languages: Languages, name: str) -> Made:
    if not kind.list_name or kind.list_name.startswith("${"):
        raise Left("its choices are earlier answers, which are not known here")
    several = kind.name == "multiple"
    size = lists.size(kind.list_name)
    if not size:
        raise Left(f"the sheet choices has no list called {kind.list_name}")
    made = Made({}, {})
    listed = [] if size > _MOST_LISTED else _listed(kind.list_name, lists, made, name, several)
    if kind.or_other:
        _add_other(listed, made, languages)
        made.changes.append("what people write under “Other” is not taken over")
    made.changes += [change for column, change in _NOT_TAKEN.items() if row[column]]
    if _SHUFFLED.search(row["parameters"]):
        made.changes.append("its choices keep their order: they are not shuffled")
    most = MAX_QUESTIONS if several else MAX_FEW_CHOICES
    if size > _MOST_LISTED or len(listed) > most:
        raise Left(f"it has more than {most} choices, the most of a question in a form: merge some")
    if several:
        return _boxes(listed, made, languages)
    if len(listed) < 2:
        raise Left("its list has only one choice")
    if "likert" in row["appearance"].lower():
        _add_scores(listed, made)
    made.question = {"choices": listed}
    return made


def _boxes(listed: list[dict[str, Any]], made: Made, languages: Languages) -> Made:
    choices = [{"id": one, "label": usual_label(one, languages.tags)} for one in (NO, YES)]
    made.question = {"boxes": listed, "type": "multi", "choices": choices}
    return made


def _listed(
    list_name: str, lists: Lists, made: Made, question: str, several: bool
) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = []
    seen: dict[tuple[str, ...], str] = {}
    used: set[str] = set()
    merged = 0
    most = 63 - len(question) if several else 64
    for named, label in lists.labels(list_name):
        look = tuple(map(folded, label.values()))
        if not label or look in seen:
            # Nobody could tell them apart, so rules about either name mean the same choice.
            if look in seen:
                made.named.setdefault(named, seen[look])
            merged += 1
            continue
        new = identifier(named, used, most)
        used.add(new)
        entry: dict[str, Any] = {"id": new, "label": label}
        if is_refusal(label) and all("role" not in one for one in listed):
            entry["role"] = "no_answer"
            if is_bare_refusal(label):
                text = next(iter(label.values()))
                made.changes.append(
                    f"“{text}” counts as “Prefer not to say”: if it is an answer, remove its role"
                )
        listed.append(entry)
        seen[look] = new
        made.named.setdefault(named, new)
    if merged:
        made.changes.append(f"{merged} choices that look like an earlier one are left out")
    unlabelled = lists.unlabelled(list_name)
    if unlabelled:
        made.changes.append(f"{unlabelled} choices without a label show their name")
    return listed


def _add_other(listed: list[dict[str, Any]], made: Made, languages: Languages) -> None:
    """Add the choice `other` of or_other, unless the list has it; rules know it by that name."""
    label = {tag: _OTHER.get(tag.partition("-")[0].lower(), "Other") for tag in languages.tags}
    wanted = {folded(text) for text in label.values()}
    for one in listed:
        if wanted & {folded(text) for text in one["label"].values()}:
            made.named.setdefault("other", one["id"])
            return
    new = identifier("other", [one["id"] for one in listed], 16)
    listed.append({"id": new, "label": label})
    made.named.setdefault("other", new)


def _add_scores(listed: Sequence[dict[str, Any]], made: Made) -> None:
    """Score the choices by their names, if these are consecutive whole numbers of a scale."""
    names = {new: name for name, new in reversed(made.named.items())}
    answers = [one for one in listed if "role" not in one]
    numbers = [names.get(one["id"], "") for one in answers]
    if not all(re.fullmatch(r"-?\d{1,6}", number) for number in numbers):
        return
    scores = sorted(int(number) for number in numbers)
    is_scale = len(scores) > 1 and all(b == a + 1 for a, b in pairwise(scores))
    if not is_scale or any(is_no_point(one["label"]) for one in answers):
        made.changes.append(
            "its numbers are not used as scores: they have gaps, or a choice is no point of a scale"
        )
        return
    for one, number in zip(answers, numbers, strict=True):
        one["score"] = str(int(number))


def _number(row: Row, kind: Kind, languages: Languages) -> Made:
    if kind.name == "range":
        made = _range(row, languages)
        lost = ["constraint", "default"]
    else:
        made = _bounded(row["constraint"], languages, fractions=kind.name == "decimal")
        lost = ["default"]
    made.changes += [_NOT_TAKEN[column] for column in lost if row[column]]
    return made


def _bounded(constraint: str, languages: Languages, *, fractions: bool) -> Made:
    low, high = _bounds(constraint, fractions=fractions)
    return _rounded(low, high, languages, fractions=fractions)


def _rounded(low: Decimal, high: Decimal, languages: Languages, *, fractions: bool) -> Made:
    """Return ranges that hold the numbers from low to high, without their fractions."""
    made = _ranges(floor(low), floor(high), languages)
    if fractions:
        made.changes.append(_WHOLE)
    return made


def _range(row: Row, languages: Languages) -> Made:
    given = dict(re.findall(rf"(start|end|step)\s*=\s*({_NUMBER})(?![\d.])", row["parameters"]))
    start, end, step = (
        Decimal(given.get(key, default))
        for key, default in (("start", "0"), ("end", "10"), ("step", "1"))
    )
    start, end, step = min(start, end), max(start, end), abs(step)
    if not step or start + step > end:
        raise Left("its steps do not fit its start and end")
    steps = int((end - start) / step) + 1
    if steps > _MOST_STEPS:
        fractions = bool(start % 1 or step % 1)
        if fractions and end - start < _APART:
            raise Left(_CLOSE)
        return _rounded(start, end, languages, fractions=fractions)
    values = [f"{(start + i * step).normalize():f}" for i in range(steps)]
    listed: list[dict[str, Any]] = []
    named: dict[str, str] = {}
    for value in values:
        new = identifier(value.replace(".", "_"), [one["id"] for one in listed], 16)
        listed.append({"id": new, "label": dict.fromkeys(languages.tags, value), "score": value})
        named[value] = new
    return Made({"choices": listed}, named, [f"the {steps} steps are choices with their scores"])


def _bounds(constraint: str, *, fractions: bool) -> tuple[Decimal, Decimal]:
    """Return the smallest and largest number that a constraint permits. Raises Left.

    Without fractions, whole numbers; with them, < and > mean the same as <= and >=, but for a
    largest whole number, which is not reached.
    """
    rest = re.sub(r"(?i)\band\b|[()\s]", "", _BOUND.sub("", constraint))
    lows, highs = [], []
    for sign, text in _BOUND.findall(constraint):
        number = Decimal(text)
        if sign in (">=", ">"):
            whole = ceil(number) if sign == ">=" else floor(number) + 1
            lows.append(number if fractions else Decimal(whole))
        else:
            highs.append((number, floor(number) if sign == "<=" else ceil(number) - 1))
    if rest or not lows or not highs:
        raise Left(LEFT["integer"])
    highest, whole = min(highs)
    if fractions and highest - max(lows) < _APART:
        raise Left(_CLOSE)
    return max(lows), Decimal(whole)


def _ranges(low: int, high: int, languages: Languages) -> Made:
    """Return a number asked by about five equal ranges. Raises Left."""
    width = high - low + 1
    if width < 2 or max(abs(low), abs(high)) > _MOST:
        raise Left("its smallest and largest number leave no ranges")
    lows = [low + width * i // min(_PARTS, width) for i in range(min(_PARTS, width))]
    ends = [*(following - 1 for _, following in pairwise(lows)), high]
    listed: list[dict[str, Any]] = []
    for first, last in zip(lows, ends, strict=True):
        is_last = last == high
        name = f"{first}_up" if is_last else f"{first}" if first == last else f"{first}_{last}"
        text = f"{first}+" if is_last else f"{first}" if first == last else f"{first}–{last}"
        label = dict.fromkeys(languages.tags, text)
        listed.append({"id": name.replace("-", "m"), "label": label, "from": first})
    shown = ", ".join(one["label"][languages.tags[0]] for one in listed)
    return Made({"choices": listed}, {}, [f"asked as one of the ranges {shown}: edit them"])
