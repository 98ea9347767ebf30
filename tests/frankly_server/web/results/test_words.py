# SPDX-License-Identifier: Apache-2.0
"""Texts of the pages of results: complete in every language, and nothing is said beside them."""

import ast
import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from frankly_analyst import words as analyst_words
from frankly_protocol.explanation.catalogue import plural
from frankly_protocol.languages import EXPLAINED
from frankly_server.web.results import words
from frankly_server.web.results.words import FLAGS, WARNED, Words, own_name, texts_of

ROOM = Path(words.__file__).parent
TEMPLATES = ROOM.parent / "admin" / "templates" / "admin"
SOURCES = [
    *ROOM.glob("*.py"),
    *(
        Path(analyst_words.__file__).parent / f"{name}.py"
        for name in ("shown", "charts", "drawing")
    ),
    Path(analyst_words.__file__).parent / "random_answers.py",
    ROOM.parent / "shared_results.py",
]
NAMES = re.compile(r"\{(\w+)\}")
NUMBERS = range(230)
ENGLISH = texts_of("en")
SAME = {"p_less", "p_is", "named", "ends", "group_n", "quoted", "scores", "comma", "and", "asked",
        "picture_svg", "picture_png", "figure_is", "figure_ends", "chart_note", "source_fine", "from_ends",
        "thousands", "date", "in_versions", "version_group", "version", "versions"}  # fmt: skip
"""Texts that may be the same in another language: they are signs, or have few words of their own."""


SPACED = {"comma", "thousands", "within_group", "within_period", "within_both", "random_together"}
"""Texts that can begin or end with a space."""


def forms(text: Any) -> dict[str, str]:
    return {"other": text} if isinstance(text, str) else text


@pytest.mark.parametrize("tag", EXPLAINED)
def test_a_language_has_every_text_with_the_same_values(tag: str) -> None:
    own = json.loads((ROOM / "texts" / f"{tag}.json").read_text("utf-8"))
    expected = set(json.loads((ROOM / "texts" / "en.json").read_text("utf-8")))
    if tag != "en":
        expected |= {*analyst_words.TEXTS, *(f"flag_{flag}" for flag in WARNED)}
    assert set(own) == expected
    categories = {plural(tag, n) for n in NUMBERS}
    for name, text in texts_of(tag).items():
        english = forms(ENGLISH[name])
        values = set(NAMES.findall(english["other"]))
        # What English says by number has a form for each number of the language, and nothing else has.
        assert set(forms(text)) == (categories if len(english) > 1 else {"other"}), name
        for category, form in forms(text).items():
            may_lack = {"n"} if category in ("zero", "one", "two") else set()
            assert values - may_lack <= set(NAMES.findall(form)) <= values, (name, category)
            assert "{" not in NAMES.sub("", form)
            assert form.strip() == form or name in SPACED


@pytest.mark.parametrize("tag", [tag for tag in EXPLAINED if tag != "en"])
def test_no_text_is_left_in_english(tag: str) -> None:
    for name, text in texts_of(tag).items():
        if name in SAME or len(re.findall("[A-Za-z]{2,}", NAMES.sub("", str(ENGLISH[name])))) < 2:
            continue
        assert not set(forms(text).values()) & set(forms(ENGLISH[name]).values()), name


def said(source: Path) -> Iterator[str]:
    """Yield the names of texts that a file says, as patterns."""
    if source.suffix == ".html":
        text = source.read_text("utf-8")
        for call in re.findall(r"say\(([^()]*)", text):
            yield from re.findall(r'"(\w+)"', call.partition(", ")[0])
        return
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (str(v.value) if isinstance(v, ast.Constant) else r"\w+" for v in node.values)
            yield "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)


def test_every_text_is_said_somewhere() -> None:
    files = [*SOURCES, *(TEMPLATES / name for name in ("results_body.html", "shared_results.html"))]
    patterns = {one for file in files for one in said(file)}
    literal = {one for one in patterns if re.fullmatch(r"\w+", one)}
    joined = [re.compile(one) for one in patterns if r"\w+" in one and one != r"\w+"]
    of_class = {"thousands", "language"}
    unsaid = {
        name
        for name in ENGLISH
        if name not in literal | of_class and not any(one.fullmatch(name) for one in joined)
    }
    assert unsaid == set()


IN_ENGLISH = {
    "completion_words",
    "flag_words",
    "InvalidInput",
    "FLAGS",
    "field",
    "declare",
    "_NO_LINK",
}
"""Functions, calls and constants with English texts: for the page of estimates, and for programs."""


def own_texts(node: ast.AST) -> Iterator[str]:
    """Yield the texts of several words in a piece of code, without docstrings."""
    name = getattr(node, "name", "") or getattr(getattr(node, "func", None), "id", "")
    target = getattr(getattr(node, "target", None), "id", "")
    if {name, target} & IN_ENGLISH:
        return
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        if re.search(r"[a-z]{2,} [a-z]|^ ?[a-z]+ $|^ [a-z]+ ?$", node.value):
            yield node.value
        return
    for child in ast.iter_child_nodes(node):
        yield from own_texts(child)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_code_has_no_texts_of_its_own(source: Path) -> None:
    if source.stem == "asked":
        return
    found = set(own_texts(ast.parse(source.read_text("utf-8"))))
    # Beginnings of ids, the description of a chart's error, and fields of the analysis.
    allowed = {"up to ", "quantile ", "a line needs an estimate", "a chart needs at least one line",
               "a heat map needs at least one cell", "intervals table", "label soft"}  # fmt: skip
    is_markup = re.compile(r'[="]')
    assert {text for text in found - allowed if not is_markup.search(text)} == set(), source


@pytest.mark.parametrize("tag", EXPLAINED)
def test_numbers_and_dates_are_written_as_in_the_language(tag: str) -> None:
    own, day = Words(tag, tag), date(2026, 3, 9)
    assert re.sub(r"\D", "", own.count(1234567)) == "1234567"
    assert re.findall(r"\d+", own.figure("−12.5%")) == ["12", "5"]
    assert sorted(re.findall(r"\d+", own.date(day))) == ["03", "09", "2026"]
    assert own.p(0.0001).startswith("p < 0")
    assert own.p(0.25) == f"p = {own.figure('0.250')}"


def test_languages_have_their_own_notation() -> None:
    written = {
        tag: (Words(tag, tag).count(12345), Words(tag, tag).figure("1.5%")) for tag in EXPLAINED
    }
    assert written["en"] == ("12,345", "1.5%")
    assert written["de"] == ("12.345", "1,5 %")
    assert written["tr"] == ("12.345", "%1,5")
    assert written["fr"] == ("12\u202f345", "1,5 %")


def test_values_are_inserted_as_they_are() -> None:
    """Labels of a survey may contain braces, and are never read as texts."""
    assert (
        Words("en").say("arm_asked", arm="{question}", question="{0}{x!r}")
        == "Arm {question} asked: {0}{x!r}"
    )


@pytest.mark.parametrize(
    ("tag", "name"),
    [("de", "Deutsch"), ("de-AT", "Deutsch (de-AT)"), ("hi", "hi"), ("zh-Hant", "中文 (zh-Hant)")],
)
def test_a_language_is_called_by_its_own_name(tag: str, name: str) -> None:
    assert own_name(tag) == name


def test_a_language_without_texts_gets_the_english_ones() -> None:
    own = Words("hi", "hi")
    assert (own.language, own.labels) == ("en", "hi")
    assert own.say("show") == "Show"
    assert FLAGS["imprecise"] == own.say("flag_imprecise")


COUNTED = {
    "uk": {
        1: "відповідь",
        2: "відповіді",
        5: "відповідей",
        21: "відповідь",
        22: "відповіді",
        101: "відповідь",
    },
    "pl": {1: "odpowiedź", 2: "odpowiedzi", 5: "odpowiedzi", 21: "odpowiedzi", 22: "odpowiedzi"},
    "ar": {1: "إجابة واحدة", 2: "إجابتان", 3: "3 إجابات", 11: "11 إجابة", 102: "102 إجابة"},
}


@pytest.mark.parametrize("tag", COUNTED)
def test_answers_are_counted_in_the_forms_of_the_language(tag: str) -> None:
    for n, form in COUNTED[tag].items():
        assert Words(tag, tag).say("counted", n=n).removesuffix(".").endswith(form), n


DIRECTIONS = {
    "de": ("höchstens", "mindestens", "steigt", "fällt"),
    "es": ("como máximo", "al menos", "sube", "baja"),
    "fr": ("au plus", "au moins", "augmente", "baisse"),
    "it": ("al massimo", "almeno", "aumenta", "cala"),
    "nl": ("hoogstens", "minstens", "stijgt", "daalt"),
    "pt": ("no máximo", "pelo menos", "sobe", "desce"),
    "pl": ("najwyżej", "co najmniej", "wzrost", "spadek"),
    "uk": ("щонайбільше", "щонайменше", "зростання", "спад"),
    "tr": ("en çok", "en az", "artıyor", "düşüyor"),
    "ar": ("على الأكثر", "على الأقل", "ارتفاع", "انخفاض"),
    "ja": ("最大", "少なくとも", "増えて", "減って"),
    "zh": ("最多", "至少", "上升", "下降"),
}


@pytest.mark.parametrize("tag", DIRECTIONS)
def test_directions_are_not_exchanged(tag: str) -> None:
    most, least, rises, falls = DIRECTIONS[tag]
    assert most in texts_of(tag)["at_most"]
    assert least in texts_of(tag)["at_least"]
    for step in ("day", "week", "month", "p"):
        assert rises in texts_of(tag)[f"rises_{step}"]
        assert falls in texts_of(tag)[f"falls_{step}"]
    # Who has more is named before who has less, in every language.
    for name in ("common_by", "common_p", "higher_by", "higher_p"):
        assert texts_of(tag)[name].index("{higher}") < texts_of(tag)[name].index("{lower}")
