# SPDX-License-Identifier: Apache-2.0
"""Import of XLSForms, the questionnaires of ODK and Kobo, as drafts with one form.

Questions with choices are taken over, numbers as ranges. Nothing that identifies a person, a place
or a device is, and no free text, because neither can be randomised.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from frankly_protocol.errors import InvalidInput
from frankly_protocol.mechanisms.agreement import MAX_CHOICES, MAX_QUESTIONS

from frankly_server.surveys.definition import parse_value
from frankly_server.surveys.editing import Draft, slug
from frankly_server.surveys.xlsform_questions import (
    LEFT,
    UNKNOWN,
    Kind,
    Left,
    Lists,
    Made,
    identifier,
    question_of,
    skippable,
)
from frankly_server.surveys.xlsform_rules import Inexpressible, Rule, Source, implied, rules_of
from frankly_server.surveys.xlsform_texts import Languages, languages_of, plain
from frankly_server.surveys.xlsform_workbook import Row, Sheets, read_sheets, refused, selects

Outcome = Literal["taken", "changed", "left"]
_MOST_FAULTS: Final = 100
_MOST_TRIED: Final = 1000
_MOST_NESTED: Final = 50
_MOST_RULES: Final = 500_000
"""Characters of all rules that are read: ten times those of long forms."""
_MOST_ID: Final = 40
_BEGIN: Final = re.compile(r"begin[ _]+(\S.*)")
_END: Final = re.compile(r"end[ _]+(?:group|repeat|loop|lgroup|looped|kobomatrix|score|rank)\b.*")
_REPEATS: Final = ("repeat", "loop", "lgroup", "looped group")
_AFFIXES: Final = re.compile(r"^(?:add|q|get|uri:) ?|(?<=\S) prompt$")
_OTHER: Final = re.compile(r"(?i)\s+or[ _](?:specify[ _])?other$")
_ANSWERS: Final = {"one", "multiple", "range", "number", "decimal"}
_UNTYPED: Final = "it has no type: merged cells, or a formula without a stored value?"
_REPEATED: Final = "it is in a repeat: answers that one person gives several times would add up"
_FULL: Final = "the form is full: at most {} questions and boxes, and {:,} choices in all"


@dataclass(frozen=True, slots=True)
class ImportedRow:
    """What became of a row of the sheet survey.

    line : its number in the sheet. name, text : as in the form, the text in its first language.
    outcome : taken as it is, changed, or left out. reason : what differs, or why; empty if taken.
    """

    line: int
    name: str
    text: str
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """A survey draft from an XLSForm.

    draft : accepted by `parse_value`, with every choice written out. rows : of every row of the
    sheet survey, in order, without ends of groups. notes : about the whole form.
    """

    draft: Draft
    rows: tuple[ImportedRow, ...]
    notes: tuple[str, ...]


def read_xlsform(data: bytes) -> Imported:
    """Return the draft of a workbook in the XLSForm format, and a report on its rows.

    data : an .xlsx or .xls file, from anyone. Raises InvalidInput(definition_invalid) with the
    field xlsform if it cannot be read (`read_sheets`), or if no question can be taken over.
    """
    sheets = read_sheets(data)
    languages = languages_of(sheets.languages, sheets.settings.get("default_language", ""))
    last = {row["name"]: row.line for row in sheets.survey if row["type"]}
    building = _Building(languages, Lists(sheets.choices, languages), last)
    for row in sheets.survey:
        building.add(row)
    if not building.questions:
        raise refused(_nothing(building.rows))
    draft = _draft(sheets.settings, languages.tags, building.questions)
    try:
        definition = parse_value(draft)
    except InvalidInput as error:
        raise refused(f"its questions do not form a survey: {error.detail}") from None
    notes = (*languages.remarks(), *_offered(building.offers), *_lost(sheets))
    return Imported(json.loads(definition.to_json()), tuple(building.rows), notes)


def _draft(settings: Mapping[str, str], tags: Sequence[str], questions: list[Draft]) -> Draft:
    form_id = settings.get("id_string", "")
    title = plain(settings.get("title", "") or form_id)[:200].strip() or "Imported form"
    return {
        "name": slug(form_id or title),
        "title": dict.fromkeys(tags, title),
        "languages": list(tags),
        "budget": "1",
        "form": {"questions": questions},
    }


def _nothing(rows: Sequence[ImportedRow]) -> str:
    reasons = Counter(row.reason for row in rows if row.outcome == "left").most_common(3)
    listed = "; ".join(f"{n} {'row' if n == 1 else 'rows'}: {reason}" for reason, n in reasons)
    return f"no question can be taken over ({listed or 'the sheet survey has no questions'})"


def _offered(count: int) -> Iterator[str]:
    if count:
        questions = "question that is" if count == 1 else "questions that are"
        yield (
            f"“Prefer not to say” is offered by {count} {questions} not required in the form, since"
            " people may leave them unanswered"
        )


def _lost(sheets: Sheets) -> Iterator[str]:
    homeless = sum(
        not row["list_name"] and bool(row["name"] or row.labels) for row in sheets.choices
    )
    if homeless:
        yield (
            f"{homeless} rows of the sheet choices have no list_name and are not taken over: merged"
            " cells?"
        )
    for name, words in (("hint", "hints"), ("image", "pictures"), ("media", "media")):
        count = sum(bool(row[name]) for row in (*sheets.survey, *sheets.choices))
        if count:
            yield f"{count} {words} are not taken over"


@dataclass(frozen=True, slots=True)
class _Group:
    """An open group. rules, lost : of its relevant, as `_Building.read`. repeated : for a repeat."""

    rules: list[Rule]
    lost: str
    repeated: bool


@dataclass(slots=True)
class _Building:
    """The questions taken over so far, and the report.

    last : the last line of each name. line : the line that is read.
    used : ids of questions and boxes. sources : by name, for rules. rules : by item, with the
    choice of whoever is not asked. tried, faults : numbers of questions read, and refused as invalid.
    offers : number of questions with an added “Prefer not to say”.
    """

    languages: Languages
    lists: Lists
    last: Mapping[str, int]
    line: int = 0
    offers: int = 0
    questions: list[Draft] = field(default_factory=list)
    rows: list[ImportedRow] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)
    rules: dict[str, tuple[Rule, str]] = field(default_factory=dict)
    read_characters: int = 0
    groups: list[_Group] = field(default_factory=list)
    items: int = 0
    choices: int = 0
    tried: int = 0
    faults: int = 0

    def add(self, row: Row) -> None:
        """Take over a row, or report why not. Raises InvalidInput for deeply nested groups."""
        self.line = row.line
        if not row["type"]:
            # Any other row without a type is a comment.
            if row["name"] or row.labels:
                self._report(row, "left", _UNTYPED)
            return
        kind = kind_of(row["type"])
        if kind.name == "end":
            self.groups[-1:] = []
        elif kind.name in ("group", "repeat"):
            self._open(row, repeated=kind.name == "repeat")
        else:
            try:
                changes = self._take(row, kind)
            except Left as left:
                self._report(row, "left", str(left))
            else:
                self._report(row, "changed" if changes else "taken", "; ".join(changes))

    def _open(self, row: Row, *, repeated: bool) -> None:
        group = _Group(*self.read(row["relevant"]), repeated)
        self.groups.append(group)
        if len(self.groups) > _MOST_NESTED:
            raise refused(f"line {row.line}: more than {_MOST_NESTED} groups inside each other")
        if repeated:
            self._report(row, "left", "a repeat: one person answers once")
        elif group.lost:
            self._report(
                row,
                "changed",
                f"its questions are taken over without its heading and its rule ({group.lost})",
            )
        elif row["relevant"]:
            self._report(
                row,
                "changed",
                "its rule applies to each of its questions unless a row says otherwise, without"
                " its heading",
            )
        else:
            self._report(row, "changed", "its questions are taken over without its heading")

    def _report(self, row: Row, outcome: Outcome, reason: str) -> None:
        texts = [row.labels[c] for c in self._columns() if c in row.labels]
        text = plain(next(iter((*texts, *row.labels.values())), ""))
        self.rows.append(ImportedRow(row.line, row["name"], text, outcome, reason))

    def _columns(self) -> list[str]:
        return self.languages.columns[self.languages.tags[0]] if self.languages.tags else []

    def _take(self, row: Row, kind: Kind) -> list[str]:
        """Add a question; return what differs from the form. Raises Left."""
        if kind.name not in _ANSWERS:
            raise Left(LEFT.get(kind.name, UNKNOWN))
        if row["disabled"].lower() in ("yes", "true"):
            raise Left("it is disabled in the form")
        if any(group.repeated for group in self.groups):
            raise Left(_REPEATED)
        if self.items >= MAX_QUESTIONS or self.choices > MAX_CHOICES - 2:
            raise Left(_FULL.format(MAX_QUESTIONS, MAX_CHOICES))
        self.tried += 1
        if self.tried > _MOST_TRIED:
            raise Left(f"only {_MOST_TRIED:,} questions of a form are read")
        made = question_of(row, kind, self.lists, self.languages, self._id(row, kind))
        question = made.question
        self._require_room(question)
        self._require_valid(question)
        rule, change = self._rule(row)
        # Whom a rule that is lost would have spared can leave boxes empty, but needs a choice.
        if rule is not None or (change and "boxes" not in question):
            question = skippable(question, self.languages.tags)
            self._require_room(question)
            self._require_valid(question)
        if rule is not None:
            question["ask_if"] = {
                "question": rule.item,
                "choices": [choice for choice in rule.order if choice in rule.choices],
            }
        self._keep(row["name"], question, made, rule)
        return [*made.changes, *([change] if change else [])]

    def _id(self, row: Row, kind: Kind) -> str:
        name = row["name"] or next(iter(row.labels.values()), "")
        # The id of a box is that of its question and its own, so that must not be taken either.
        taken = set(self.used)
        if kind.name == "multiple":
            taken |= {one[:i] for one in self.used for i in _hyphens(one)}
        return identifier(name, taken, _MOST_ID)

    def _require_room(self, question: Draft) -> None:
        items, choices = _size(question)
        if self.items + items > MAX_QUESTIONS or self.choices + choices > MAX_CHOICES:
            raise Left(_FULL.format(MAX_QUESTIONS, MAX_CHOICES))

    def _require_valid(self, question: Draft) -> None:
        if self.faults >= _MOST_FAULTS:
            raise Left(f"{_MOST_FAULTS} questions before it are no valid questions")
        try:
            parse_value(_draft({}, self.languages.tags, [question]))
        except InvalidInput as error:
            self.faults += 1
            raise Left(error.detail) from None

    def _rule(self, row: Row) -> tuple[Rule | None, str]:
        """Return the rule of a question and of its groups, and what is not taken over of it."""
        own, why = self.read(row["relevant"])
        rules = [*(rule for group in self.groups for rule in group.rules), *own]
        lost = [text for text in (*(group.lost for group in self.groups), why) if text]
        remaining = implied(rules, self.rules)
        remaining, empty = [r for r in remaining if r.choices], len(remaining)
        if len(remaining) < empty:
            lost.append(f"{_short(row['relevant'])}: no answer satisfies it")
        # The last is the narrowest: that of the question itself, or of its innermost group.
        lost += [
            f"the part about {one.item}: a rule is about one question" for one in remaining[:-1]
        ]
        rule = remaining[-1] if remaining else None
        if not lost:
            return rule, ""
        asked = "asked of more people" if rule else "asked of everybody"
        return rule, f"{asked}: the rule is not taken over ({'; '.join(lost)})"

    def read(self, relevant: str) -> tuple[list[Rule], str]:
        """Return the rules of a cell, and why none is taken over, "" if they are."""
        self.read_characters += len(relevant)
        if not relevant:
            return [], ""
        if self.read_characters > _MOST_RULES:
            return [], f"{_short(relevant)}: the rules of the form are too long"
        try:
            return rules_of(relevant, self._source), ""
        except Inexpressible as error:
            return [], f"{_short(relevant)}: {error}"

    def _source(self, name: str) -> Source:
        """Return an earlier question, for a rule. Raises Inexpressible."""
        if name in self.sources:
            return self.sources[name]
        later = self.last.get(name, 0) > self.line
        raise Inexpressible(
            f"it is about {name}, which {'comes later' if later else 'is not taken over'}"
        )

    def _keep(self, name: str, question: Draft, made: Made, rule: Rule | None) -> None:
        self.questions.append(question)
        new = question["id"]
        items, choices = _size(question)
        self.items += items
        self.choices += choices
        if "boxes" in question:
            ids = {box["id"]: f"{new}-{box['id']}" for box in question["boxes"]}
            listed = dict.fromkeys(ids.values(), ("no", "yes"))
            named = {key: (ids[box], "yes") for key, box in made.named.items()}
            skipped = {
                ids[box["id"]]: "yes" if box.get("role") == "not_applicable" else "no"
                for box in question["boxes"]
            }
        else:
            listed = {new: tuple(choice["id"] for choice in question["choices"])}
            named = {key: (new, choice) for key, choice in made.named.items()}
            unasked = [c["id"] for c in question["choices"] if c.get("role") == "not_applicable"]
            skipped = {new: unasked[0]} if unasked else {}
        self.used |= {new, *listed}
        self.sources[name] = Source(named, listed, "boxes" in question)
        self.offers += made.offers
        if rule is not None:
            self.rules |= {item: (rule, choice) for item, choice in skipped.items()}


def _hyphens(text: str) -> Iterator[int]:
    return (i for i, char in enumerate(text) if char == "-")


def _size(question: Draft) -> tuple[int, int]:
    """Return the numbers of items and choices that a question has in a form."""
    if "boxes" in question:
        return len(question["boxes"]), 2 * len(question["boxes"])
    return 1, len(question["choices"])


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def kind_of(words: str) -> Kind:
    """Return the kind of a type such as `select_one yes_no or_other` or `begin group`."""
    words = " ".join(words.split())
    lower = words.lower()
    if _END.fullmatch(lower):
        return Kind("end")
    begin = _BEGIN.fullmatch(lower)
    if begin:
        return Kind("repeat" if begin[1].replace("_", " ").startswith(_REPEATS) else "group")
    known = selects()
    for alias in sorted(known, key=len, reverse=True):
        if lower == alias or lower.startswith(f"{alias} "):
            return _select(known[alias], words[len(alias) :].strip())
    name = _AFFIXES.sub("", _AFFIXES.sub("", lower)).replace(" ", "_").replace("-", "_")
    numbers = {"int", "integer", "percentage"}
    return Kind("number" if name in numbers else name)


def _select(meaning: str, rest: str) -> Kind:
    listed = _OTHER.sub("", rest)
    if meaning in ("select one", "select all that apply"):
        name = "one" if meaning == "select one" else "multiple"
        return Kind(name, listed, listed != rest)
    return Kind(
        {"select one external": "select_one_external"}.get(meaning, meaning.replace(" ", "_"))
    )
