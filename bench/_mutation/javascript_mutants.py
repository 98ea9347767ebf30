# SPDX-License-Identifier: Apache-2.0
"""Mutants of a JavaScript file: changes of single tokens, conditions and statements.

A tokeniser suffices for these changes and needs no Node package. Comments (which contain all
types), template literals, regular expressions and strings with spaces are not mutated.
"""

import re
from collections.abc import Iterator

from _mutation.mutant import Mutant, numbered

_TOKEN = re.compile(
    r"""(?P<space>\s+) | (?P<comment>//[^\n]* | /\*.*?\*/)
    | (?P<string>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*') | (?P<template>`)
    | (?P<number>\d[\w.]*) | (?P<word>[\w$#]+)
    | (?P<mark>=>|===|!==|<<=|>>=|<=|>=|<<|>>|\*\*|&&|\|\||\?\?=?|\?\.|\.\.\.|\+\+|--|[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_FUNCTION = re.compile(
    r"^(?:export )?(?:(?:default )?(?:async )?function\*? (?P<a>\w+)|const (?P<b>\w+) =|class (?P<c>\w+)"
    r"|  (?:static |async |get |\*)*(?P<d>#?\w+)\([^;]*\{$)",
    re.MULTILINE,
)
_CALL = re.compile(
    r"^[ ]*(?P<call>(?:await )?(?!return|throw|if\b|for\b|super\b)[\w#$][\w.#$?]*\(.*\));",
    re.MULTILINE,
)
_SWAPS = {
    "comparison": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "===": "!==", "!==": "==="},
    "and/or": {"&&": "||", "||": "&&", "??": "&&"},
    "not": {"!": ""},
    "arithmetic": {
        "+": "-",
        "-": "+",
        "*": "/",
        "/": "*",
        "%": "*",
        "**": "*",
        "<<": ">>",
        ">>": "<<",
        "&": "|",
        "|": "&",
        "+=": "-=",
        "-=": "+=",
        "*=": "/=",
    },
    "constant": {"true": "false", "false": "true"},
    "min/max, any/all": {"min": "max", "max": "min", "some": "every", "every": "some"},
}
_CODE = re.compile(r'"[a-z][a-z0-9_-]{1,39}"')
_OPERAND_BEFORE_REGEX = {"return", "typeof", "case", "of", "in", "await"}
Token = tuple[str, str, int]
"""Kind, text and position."""


def mutants(path: str, source: bytes) -> list[Mutant]:
    """Return every mutant of a file, in file order."""
    text = source.decode()
    tokens = list(_tokens(text))
    places = [*_swapped(tokens), *_conditions(tokens), *_statements(text, tokens)]
    return list(numbered(_mutant(path, text, *place) for place in places))


Place = tuple[str, int, int, str]
"""Operator, start and end in the text, replacement."""


def _mutant(path: str, text: str, operator: str, start: int, end: int, after: str) -> Mutant:
    first = text.rfind("\n", 0, start) + 1
    line = text[first : text.find("\n", start)].strip()
    names = [match.group(match.lastgroup or 0) for match in _FUNCTION.finditer(text, 0, end)]
    # Positions in the file are bytes; some comments and texts are not ASCII.
    spans = len(text[:start].encode()), len(text[:end].encode())
    return Mutant(path, names[-1] if names else "", operator, line, text[start:end], after, *spans)


def _tokens(text: str) -> Iterator[Token]:
    """Yield code tokens and strings, without space, comments, templates and regular expressions."""
    place, last = 0, ("mark", ";", 0)
    while place < len(text):
        match = _TOKEN.match(text, place)
        assert match is not None  # noqa: S101 - the last alternative takes any character
        kind, end = match.lastgroup or "", match.end()
        if kind == "template":
            end = _end_of_template(text, place)
        elif match[0][0] == "/" and kind == "mark" and not _ends_operand(last):
            regex = _REGEX.match(text, place)
            assert regex is not None  # noqa: S101 - nothing else begins with a slash here
            kind, end = "regex", regex.end()
        if kind not in ("space", "comment"):
            last = (kind, text[place:end], place)
            yield last
        place = end


def _ends_operand(token: Token) -> bool:
    kind, text, _ = token
    if kind == "word":
        return text not in _OPERAND_BEFORE_REGEX
    return kind != "mark" or text in (")", "]", "}")


def _end_of_template(text: str, start: int) -> int:
    """Return the position after a template literal, which may contain further templates."""
    place, depth = start + 1, 0
    while depth or text[place] != "`":
        if text[place] == "\\":
            place += 1
        elif text.startswith("${", place):
            depth, place = depth + 1, place + 1
        elif depth and text[place] == "{":
            depth += 1
        elif depth and text[place] == "}":
            depth -= 1
        elif depth and text[place] == "`":
            place = _end_of_template(text, place) - 1
        place += 1
    return place + 1


def _swapped(tokens: list[Token]) -> Iterator[Place]:
    for before, (kind, text, place), following in zip(tokens, tokens[1:], tokens[2:], strict=False):
        end = place + len(text)
        if before[1] == "function":
            continue  # the star of a generator
        for operator, swaps in _SWAPS.items():
            if kind in ("mark", "word") and text in swaps:
                yield operator, place, end, swaps[text]
        if kind == "number" and re.fullmatch(r"\d+n?", text):
            n, big = int(text.rstrip("n")), "n" * text.endswith("n")
            yield "constant", place, end, f"{n + 1}{big}"
            yield "constant", place, end, f"{n - 1}{big}" if n else f"(-1{big})"
        elif kind == "string" and _CODE.fullmatch(text) and following[1] != ":":
            yield "code", place, end, f'"x{text[1:-1]}"'


def _conditions(tokens: list[Token]) -> Iterator[Place]:
    for i, (kind, text, _) in enumerate(tokens):
        if kind == "word" and text == "if":
            close = _closing(tokens, i + 1)
            for value in ("true", "false"):
                yield "condition", tokens[i + 1][2] + 1, tokens[close][2], value


def _statements(text: str, tokens: list[Token]) -> Iterator[Place]:
    at = {place for _, _, place in tokens}
    for match in _CALL.finditer(text):
        if match.start("call") in at:
            yield "call removed", match.start("call"), match.end("call"), ""
    for i, (_, word, place) in enumerate(tokens):
        if word in ("throw", "return") and tokens[i + 1][1] != ";":
            end = _end_of_statement(tokens, i)
            if word == "throw":
                yield "raise removed", place, end, ""
            elif (tokens[i + 1][1], tokens[i + 2][1]) not in {("null", ";"), ("undefined", ";")}:
                yield "return", tokens[i + 1][2], end, "null"


def _closing(tokens: list[Token], i: int) -> int:
    """Return the index of the bracket that closes the one at `i`."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += (tokens[j][1] in ("(", "[", "{")) - (tokens[j][1] in (")", "]", "}"))
        if depth == 0:
            return j
    raise ValueError("the brackets do not match")


def _end_of_statement(tokens: list[Token], i: int) -> int:
    """Return the position of the semicolon or enclosing bracket that ends a statement."""
    depth = 0
    for _, text, place in tokens[i:]:
        depth += text in ("(", "[", "{")
        if depth == 0 and text in (";", ")", "]", "}"):
            return place
        depth -= text in (")", "]", "}")
    raise ValueError("the statement does not end")
