# SPDX-License-Identifier: Apache-2.0
"""Survey files as YAML: what is accepted, and for what is not the line, the sign and the way out."""

from typing import Any

import pytest
import yaml
from frankly_protocol.errors import InvalidInput
from frankly_server.surveys.yaml import WAYS_OUT, read_yaml, write_yaml

from tests.refusals import refusal

# Valid YAML 1.2 and what it means. PyYAML's own parser refuses the first five.
VALID: dict[str, Any] = {
    "a: {en: Do you gamble?}": {"a": {"en": "Do you gamble?"}},
    "a: {en: yes/no?, de: ja?}": {"a": {"en": "yes/no?", "de": "ja?"}},
    "a: [x?, 'y']": {"a": ["x?", "y"]},
    "a: {en: https://x.example/?q=1#top}": {"a": {"en": "https://x.example/?q=1#top"}},
    "a: {en: Do you smoke?\n  Really?}": {"a": {"en": "Do you smoke? Really?"}},
    "a: {en: wie geht's}": {"a": {"en": "wie geht's"}},
    "a: {en: x:y, de: 12:30}": {"a": {"en": "x:y", "de": "12:30"}},
    'a: {"en":"x"}': {"a": {"en": "x"}},
    "a: -5": {"a": "-5"},
    "a: no": {"a": "no"},
    "a: ~": {"a": "~"},
    "a: >-\n  two\n  lines": {"a": "two lines"},
    "a: 'It''s'": {"a": "It's"},
    "%YAML 1.2\n---\na: b\n...\n": {"a": "b"},
    "? a\n: b": {"a": "b"},
    "\ufeff\ufeffa: b": {"a": "b"},
}

TEXT, FIELD = "put it in quotes if it is text", "“: ” where no field can begin"
AFTER, OPEN = "text after a closing quote", "a “[” or “{” that is not closed by line"
ANCHOR, TAG = "“&” and “*” begin anchors and aliases, which are not used here", "“!” begins a tag"
NO_COLON, TAB = "a field needs “: ”, a colon and a space", "a tab; indent with spaces"
# File -> beginning of the message after "line N: "; the sign and the remedy are part of it
REFUSED: dict[str | bytes, tuple[int, str]] = {
    "a: Do you: x": (1, f"this is not valid YAML: {FIELD}"),
    "a: b\n  c: d": (2, f"this is not valid YAML: {FIELD}"),
    "name:blocky\na: b": (2, f"this is not valid YAML: {FIELD}"),
    "a: b\nmin_reports 10\nc: d": (2, f"this is not valid YAML: {NO_COLON}"),
    "a: b\nmin_reports:10\nc: d": (2, f"this is not valid YAML: {NO_COLON}"),
    "a: 'It's'": (1, f"this is not valid YAML: {AFTER}"),
    'a: "x" y': (1, f"this is not valid YAML: {AFTER}"),
    "a: b\nen: {en: Smoke?}}": (2, "this is not valid YAML: one “}” too many"),
    "- label: {en: No}]": (1, "this is not valid YAML: one “]” too many"),
    "é: x\na: @home": (2, f"this is not valid YAML: a value cannot begin with “@”; {TEXT}"),
    "a: `x`": (1, f"this is not valid YAML: a value cannot begin with “`”; {TEXT}"),
    "a: %x": (1, f"this is not valid YAML: a value cannot begin with “%”; {TEXT}"),
    "a: }": (1, f"this is not valid YAML: a value cannot begin with “}}”; {TEXT}"),
    # Valid YAML 1.2, which LibYAML refuses.
    "a: {en: ?x}": (1, f"this is not valid YAML: a value cannot begin with “?”; {TEXT}"),
    "a: {en: :x}": (1, f"this is not valid YAML: a value cannot begin with “:”; {TEXT}"),
    "a: - x": (1, f"this is not valid YAML: “-” begins an entry of a list; {TEXT}"),
    "a: ? x": (1, f"this is not valid YAML: “?” begins a key; {TEXT}"),
    "- a\nb: c": (2, "this is not valid YAML: entries of a list that are not indented alike"),
    "a:\n\t- x": (2, f"this is not valid YAML: {TAB}"),
    "title:\n  en: A\n\tde: B": (3, f"this is not valid YAML: {TAB}"),
    "a: |\n\tx": (2, f"this is not valid YAML: {TAB}"),
    "a: b\nc: [x\n": (2, f"this is not valid YAML: {OPEN} 3"),
    "a: {en: What: this?}": (1, f"this is not valid YAML: {OPEN} 1; within it, a text with “: ”"),
    "a: b\nc: {en: Question #1?}\nd: e": (2, f"this is not valid YAML: {OPEN} 3; within it"),
    "a: b\nc: [d,\n": (2, "this is not valid YAML: the file ends within a “[” or “{”"),
    "a: {b:": (1, "this is not valid YAML: the file ends within a “[” or “{”"),
    "a: b\nc: 'x\nd: e": (2, "this is not valid YAML: a quote that is not closed"),
    'a: "\\q"': (1, "this is not valid YAML: “\\” and a sign that is none of YAML's"),
    'a: "\\xZZ"': (1, "this is not valid YAML: “\\” and a sign that is none of YAML's"),
    'a: "\\ud800"': (1, "this is not valid YAML: “\\u” with no character of that number"),
    "a: b\n---\na: b": (2, "this is not valid YAML: a second document, after “---”"),
    "a: b\n...\na: b": (3, "this is not valid YAML: text after “...”"),
    "a: b\n%TAG ! x\n": (2, f"“%” begins a directive, which is not used here; {TEXT}"),
    "%TAG !a! b\n" * 50_000: (1, "“%” begins a directive"),
    "a: *star": (1, f"{ANCHOR}; {TEXT}"),
    "a: &x y": (1, f"{ANCHOR}; {TEXT}"),
    "a: &a [x]\nb: *a": (1, ANCHOR),
    "<<: *a": (1, ANCHOR),
    "en: **Smoke**?": (1, f"this is not valid YAML: {ANCHOR}"),
    "a: {en: & smoke}": (1, f"this is not valid YAML: {ANCHOR}"),
    "a: !Important": (1, f"{TAG}, which is not used here; {TEXT}"),
    "a: !x!y": (1, f"this is not valid YAML: {TAG}"),
    "!!python/object/apply:os.system ['true']": (1, TAG),
    "a: !!int 5": (1, TAG),
    "? {a: b}\n: c": (1, "a key must be plain text"),
    "a: b\n\na: c": (3, "the same key appears twice"),
    "[" * 5000 + "]" * 5000: (1, "nested deeper than 16 levels"),
    "\n".join(" " * i + "a:" for i in range(300)): (16, "nested deeper than 16 levels"),
    "é: x\nname: a\x07b": (2, "a character that cannot be shown safely; remove it"),
    "name: a\x00b": (1, "a character that cannot be shown safely; remove it"),
    b"a: b\nname: caf\xe9": (2, "the file is not UTF-8; save it as UTF-8"),
}


@pytest.mark.parametrize("text", VALID)
def test_valid_yaml_is_read(text: str) -> None:
    assert read_yaml(text.encode()) == VALID[text]
    assert read_yaml(write_yaml(VALID[text])) == VALID[text]


def test_a_missing_value_is_an_empty_text() -> None:
    assert read_yaml(b"a:\nb: {}\nc: []\n") == {"a": "", "b": {}, "c": []}


@pytest.mark.parametrize("text", REFUSED)
def test_a_refusal_names_line_sign_and_way_out(text: str | bytes) -> None:
    line, said = REFUSED[text]
    error = refusal(InvalidInput, read_yaml, text if isinstance(text, bytes) else text.encode())
    assert error.detail.startswith(f"line {line}: {said}")
    code = "text_characters" if "shown safely" in said else "definition_invalid"
    assert (error.code, error.field) == (code, None)


@pytest.mark.parametrize(
    "text",
    [
        "canary: x: y",
        "canary: [x",
        "\ufeff\ufeff- \ncanary: ?x",
        "'canary'canary: x",
        "a: @canary",
        "canary: x\ncanary: y",
    ],
)
def test_a_refusal_does_not_repeat_the_file(text: str) -> None:
    assert "canary" not in refusal(InvalidInput, read_yaml, text.encode()).detail


@pytest.mark.parametrize("start", WAYS_OUT)
def test_every_explained_problem_occurs(start: str) -> None:
    assert any(start in said for said in map(_said, REFUSED))


def _said(text: str | bytes) -> str:
    """Return what LibYAML says of a file."""
    try:
        yaml.load(text, Loader=yaml.CSafeLoader)
    except yaml.YAMLError as error:
        return str(error)
    return ""
