# SPDX-License-Identifier: Apache-2.0
"""Definition of ε-LDP as a bound on the likelihood ratio, stated in the same sentence everywhere.

ε bounds how much more likely a report is from one true answer than from another. ε does not bound
how likely an answer is given the report, because that probability depends on the prior. Sentences
about likelihood in pages, templates and source strings must use the canonical words; pages use the
whole sentence.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Final

import pytest

CANONICAL: Final = (
    "Whatever is sent, it was at most e^ε times as likely from one true answer as from any other, so nobody's odds "
    "about you can move by more than that factor."
)
Reader = Callable[[Path], Iterator[str]]
_FACTOR: Final = r"(?:e\^ε|e\^[\d.]+|e¹ = 2\.72|E|\d+(?:\.\d+)?|that many|so many|…)"
_CLAUSE: Final = (
    rf"at most {_FACTOR} times as likely from one (?P<side>true answer|secret) as from any other\b"
)
_WHOLE: Final = rf"Whatever is sent, it was {_CLAUSE}, so nobody's odds about you can move by more than that factor"
_ABOUT_LIKELIHOOD: Final = re.compile(
    r"\btimes as (?:likely|probable|plausible)|\btimes (?:likelier|more (?:likely|probable))|"
    r"\btells? two \w+ apart by|\b(?:e\^ε|exp\(ε\)|e\^epsilon)[^.;|]*\b(?:likel|probab(?:le|ly)|odds|belief|chance)",
    re.IGNORECASE,
)
_NAMED_ONLY: Final = re.compile(r'"at most … times as likely"')
"""The quoted label of a form's field, which is not a definition."""

FALSE: Final = {
    "tour": "ε is the level in nats: whatever is sent, no true answer is more than e^ε times as likely behind it as "
    "another.",
    "run_a_survey": "Whether somebody smokes is protected by itself (LDP, ε = 1: no answer is more than e¹ = 2.7 times "
    "as likely to have been given as another, whatever is known).",
    "glossary": "| LDP of the answer | no report makes one answer more than E times as likely as another | Funnel |",
}
"""Former sentences of three pages, which bound posterior odds: false for every uneven prior."""
PAGES: Final = (
    "README.md",
    *(
        f"docs/{page}.md"
        for page in ("tour", "run_a_survey", "choosing", "glossary", "protocol", "first_survey")
    ),
)
"""Pages that must contain the whole sentence."""


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of prose; lines are joined, table cells and list items are separate."""
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*|#>]|\d+\.)\s)|\|", text):
        prose = " ".join(re.sub(r"[*_`]{1,2}(?=\S)|(?<=\S)[*`]{1,2}", "", block).split()).replace(
            "’", "'"
        )
        yield from re.split(r"(?<=[.!?;])\s+", prose)


def fault(sentence: str, *, whole: bool) -> bool:
    """Return True if the sentence describes likelihood without the canonical words."""
    if not _ABOUT_LIKELIHOOD.search(_NAMED_ONLY.sub("", sentence)):
        return False
    stated = re.search(_CLAUSE, sentence, re.IGNORECASE)
    if stated is None or len(_ABOUT_LIKELIHOOD.findall(sentence)) != 1:
        return True
    return (
        whole
        and stated["side"].lower() == "true answer"
        and not re.search(_WHOLE, sentence, re.IGNORECASE)
    )


def of_a_page(path: Path) -> Iterator[str]:
    """Yield the text of a page, without its fenced blocks."""
    yield re.sub(
        r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def of_python(path: Path) -> Iterator[str]:
    """Yield every string of a module, including docstrings; a number replaces each value in an f-string."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "2" for part in node.values
            )


def of_javascript(path: Path) -> Iterator[str]:
    """Yield the lines of a module, with concatenated strings and block comments joined."""
    joined = re.sub(r"[\"`']\s*\+\s*[\"`']", "", path.read_text(encoding="utf-8"))
    yield re.sub(r"\$\{[^}]*\}", "2", re.sub(r"\n\s*\*+ ?", " ", joined)).replace("\n", "\n\n")


def of_a_template(path: Path) -> Iterator[str]:
    """Yield the text of a template, with one paragraph per element."""
    markup = re.sub(r"\{[{%].*?[}%]\}", " ", path.read_text(encoding="utf-8"))
    yield unescape(re.sub(r"<[^>]+>", "\n\n", markup))


def of_a_notebook(path: Path) -> Iterator[str]:
    """Yield the source of every cell."""
    yield from (
        "".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    )


SOURCES: Final = (
    (("*.md", "docs/**/*.md", "examples/**/*.md"), of_a_page),
    (
        ("docs/*.json", "server/**/*.yaml", "examples/**/*.yaml"),
        lambda path: iter([path.read_text(encoding="utf-8")]),
    ),
    (
        tuple(
            f"{folder}/**/*.py"
            for folder in (
                "shared",
                "design",
                "client_sdk",
                "analyst",
                "server",
                "examples",
                "tools",
            )
        ),
        of_python,
    ),
    (
        ("client_sdk/browser/src/*.js", "client_sdk/browser/*.d.ts", "examples/**/*.js"),
        of_javascript,
    ),
    (("server/**/*.html", "examples/**/*.html", "tools/site/theme/*.html"), of_a_template),
    (("examples/**/*.ipynb",), of_a_notebook),
)


@pytest.mark.parametrize(
    ("patterns", "texts"), SOURCES, ids=lambda value: value[0] if isinstance(value, tuple) else ""
)
def test_likelihood_is_described_only_in_the_canonical_words(
    root: Path, patterns: tuple[str, ...], texts: Reader
) -> None:
    paths = sorted({path for pattern in patterns for path in root.glob(pattern)})
    assert paths
    faults = [
        (path.relative_to(root).as_posix(), sentence)
        for path in paths
        if not {"build", "node_modules", ".venv"} & set(path.parts)
        for text in texts(path)
        for sentence in sentences(text)
        if fault(sentence, whole=path.suffix == ".md" and path.name != "api.md")
    ]
    assert faults == []


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_that_define_it_have_the_whole_sentence(root: Path, page: str) -> None:
    [text] = of_a_page(root / page)
    assert any(re.search(_WHOLE, sentence, re.IGNORECASE) for sentence in sentences(text))


def test_the_canonical_sentence_is_accepted() -> None:
    assert [fault(sentence, whole=True) for sentence in sentences(CANONICAL)] == [False]


@pytest.mark.parametrize("page", FALSE)
def test_the_old_sentences_are_found(page: str, tmp_path: Path) -> None:
    """Each sentence is also found in a Python string, a JavaScript string, a template and a notebook cell."""
    sentence_text = FALSE[page]
    (tmp_path / "a.md").write_text(f"# A\n\nBefore.\n{sentence_text}\nAfter.\n", encoding="utf-8")
    (tmp_path / "a.py").write_text(
        f'"""A module."""\n\nTEXT = (\n    {sentence_text[:40]!r}\n    f{sentence_text[40:]!r}\n)\n',
        "utf-8",
    )
    (tmp_path / "a.js").write_text(
        f"const a = {json.dumps(sentence_text[:40])} +\n  {json.dumps(sentence_text[40:])};\n",
        "utf-8",
    )
    (tmp_path / "a.html").write_text(f"<p>Before. <b>{sentence_text}</b></p>\n", encoding="utf-8")
    (tmp_path / "a.ipynb").write_text(
        json.dumps({"cells": [{"source": [sentence_text[:30], sentence_text[30:]]}]}),
        encoding="utf-8",
    )
    readers = {
        "md": of_a_page,
        "py": of_python,
        "js": of_javascript,
        "html": of_a_template,
        "ipynb": of_a_notebook,
    }
    for suffix, read in readers.items():
        read_sentences = [
            sentence for text in read(tmp_path / f"a.{suffix}") for sentence in sentences(text)
        ]
        assert any(fault(sentence, whole=False) for sentence in read_sentences), suffix


def test_the_canonical_bound_holds_for_every_prior_and_the_old_one_does_not() -> None:
    """With Warner's mechanism at ratio 3, likelihoods differ by a factor of 3; under a prior of
    99 : 1 the posterior odds are still 33."""
    truthful, flipped, prior = 3, 1, (99, 1)
    for y in (0, 1):
        likelihoods = (truthful, flipped) if y == 0 else (flipped, truthful)
        assert max(likelihoods) <= 3 * min(likelihoods)
        posterior = [
            share * likelihood for share, likelihood in zip(prior, likelihoods, strict=True)
        ]
        moved = posterior[0] * prior[1] / (posterior[1] * prior[0])
        assert 1 / 3 <= moved <= 3
        assert posterior[0] > 3 * posterior[1]
