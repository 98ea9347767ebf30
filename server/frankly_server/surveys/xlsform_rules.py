# SPDX-License-Identifier: Apache-2.0
"""Rules of XLSForms (`relevant`): those about the choices of one question become skip rules."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

_MAX_LENGTH: Final = 2000
_MAX_DEPTH: Final = 10
_NAME: Final = r"\$\{\s*(?P<name>[^{}\s]+)\s*\}"
_VALUE: Final = r"""(?P<value>'[^']*'|"[^"]*"|‘[^’]*’|“[^”]*”|-?\d+(?:\.\d+)?)"""
_COMPARED: Final = re.compile(rf"{_NAME}\s*(?P<sign>!?=)\s*{_VALUE}")
_REVERSED: Final = re.compile(rf"{_VALUE}\s*(?P<sign>!?=)\s*{_NAME}")
_SELECTED: Final = re.compile(rf"selected\s*\(\s*{_NAME}\s*,\s*{_VALUE}\s*\)")
_NOT: Final = re.compile(r"not\s*\((?P<inner>.*)\)", re.DOTALL)


class Inexpressible(Exception):
    """A rule that no skip rule can express; its text says why."""


@dataclass(frozen=True, slots=True)
class Source:
    """A question that is taken over, for rules about it.

    items : the id of the item and of the choice for each choice's name; the items of a question
    with boxes are its boxes. choices : the choices of each item, in order. boxes : whether people
    tick several choices.
    """

    items: Mapping[str, tuple[str, str]]
    choices: Mapping[str, tuple[str, ...]]
    boxes: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """Asked only after one of these choices of an item. order : all choices of the item, in order."""

    item: str
    choices: frozenset[str]
    order: tuple[str, ...] = field(compare=False)


Find = Callable[[str], Source]


def rules_of(expression: str, find: Find) -> list[Rule]:
    """Return the rules that must all hold, one for each part that is joined by `and`.

    find : returns the source of a name, or raises Inexpressible if there is none. Raises
    Inexpressible if a part is not about the choices of one question, or about one not taken over.
    """
    if len(expression) > _MAX_LENGTH:
        raise Inexpressible("it is too long")
    return _conjunction(" ".join(expression.split()), find, 0)


def implied(rules: Sequence[Rule], of: Mapping[str, tuple[Rule, str]]) -> list[Rule]:
    """Return the rules without those that follow from another one; equal items become one rule.

    of : the rule of every item that has one, and its choice where it is skipped. A rule about an
    item implies the item's own rule, unless it wants that choice.
    """
    merged: dict[str, Rule] = {}
    for rule in rules:
        known = merged.get(rule.item)
        choices = rule.choices if known is None else rule.choices & known.choices
        merged[rule.item] = replace(rule, choices=choices)
    certain: list[Rule] = []
    for rule in merged.values():
        asked = rule
        while asked.item in of and of[asked.item][1] not in asked.choices:
            asked = of[asked.item][0]
            certain.append(asked)
    return [
        rule
        for rule in merged.values()
        if not any(one.item == rule.item and one.choices <= rule.choices for one in certain)
    ]


def _conjunction(text: str, find: Find, depth: int) -> list[Rule]:
    if depth > _MAX_DEPTH:
        raise Inexpressible("it is too deeply nested")
    text = _unwrapped(text)
    parts = _split(text, " and ")
    if len(parts) > 1:
        # In XPath, `and` binds tighter than `or`, but people often mean the opposite.
        if _is_split(text, " or "):
            raise Inexpressible("it mixes and with or, without brackets")
        return [rule for part in parts for rule in _conjunction(part, find, depth + 1)]
    return [_disjunction(text, find, depth)]


def _disjunction(text: str, find: Find, depth: int) -> Rule:
    rules = []
    for part in _split(_unwrapped(text), " or "):
        inner = _unwrapped(part)
        if inner != text and (_is_split(inner, " or ") or _is_split(inner, " and ")):
            [one, *others] = _conjunction(inner, find, depth + 1)
            if others:
                raise Inexpressible("it joins several conditions")
            rules.append(one)
        else:
            rules.append(_condition(inner, find, depth))
    if len({rule.item for rule in rules}) > 1:
        raise Inexpressible("it is about several questions or boxes")
    return replace(rules[0], choices=frozenset().union(*(rule.choices for rule in rules)))


def _condition(text: str, find: Find, depth: int) -> Rule:
    negated = _NOT.fullmatch(text)
    if negated and _closes_last(text):
        [one, *others] = _conjunction(negated["inner"], find, depth + 1)
        if others:
            raise Inexpressible("it joins several conditions")
        return _complement(one)
    for pattern in (_COMPARED, _REVERSED, _SELECTED):
        match = pattern.fullmatch(text)
        if match:
            compared = pattern is not _SELECTED
            rule = _rule(match["name"], match["value"].strip("'\"‘’“”"), find, compared=compared)
            return _complement(rule) if match.groupdict().get("sign") == "!=" else rule
    raise Inexpressible("only rules about the choices of one question can be")


def _rule(name: str, value: str, find: Find, *, compared: bool) -> Rule:
    source = find(name)
    if source.boxes and compared:
        raise Inexpressible(f"it compares all that is ticked in {name}: only selected() can be")
    if value not in source.items:
        raise Inexpressible(f"{name} has no choice {value or 'that is empty'}")
    item, choice = source.items[value]
    return Rule(item, frozenset({choice}), source.choices[item])


def _complement(rule: Rule) -> Rule:
    others = frozenset(rule.order) - rule.choices
    if not others:
        raise Inexpressible("no choice of the other question is left")
    return replace(rule, choices=others)


def _unwrapped(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and _closes_last(text):
        text = text[1:-1].strip()
    return text


def _closes_last(text: str) -> bool:
    """Return True if the first bracket of a text closes at its end."""
    depth, quote = 0, ""
    for i, char in enumerate(text):
        if quote or char in "'\"":
            quote = "" if char == quote else quote or char
        elif char in "()":
            depth += 1 if char == "(" else -1
            if depth == 0:
                return i == len(text) - 1
    return False


def _is_split(text: str, word: str) -> bool:
    return len(_split(text, word)) > 1


def _split(text: str, word: str) -> list[str]:
    """Split a text at a word outside brackets and quotes."""
    parts, depth, quote, start, i = [], 0, "", 0, 0
    while i < len(text):
        char = text[i]
        if quote or char in "'\"":
            quote = "" if char == quote else quote or char
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif depth == 0 and text[i : i + len(word)].lower() == word:
            parts.append(text[start:i])
            i += len(word) - 1
            start = i
        i += 1
    return [part.strip() for part in (*parts, text[start:])]
