# SPDX-License-Identifier: Apache-2.0
"""Random survey files that use every field which the question pages show, and more."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from frankly_server.surveys.editing import Draft

_TAGS = ("en", "de", "pt-BR", "zh", "sw", "ar")
_WORDS = (
    "Wie",
    "often",
    "não",
    "did you",
    "年",
    "kwa",
    "Äpfel",
    "5 %",
    "a “quote”",
    "<b>",
    "&amp;",
)


def random_file(seed: int) -> Draft:
    """Return a survey file as values: languages, a form, blocks, public questions, an item, a prior."""
    rng = random.Random(seed)
    tags = rng.sample(_TAGS, rng.randint(1, 3))
    made = _Maker(rng, tags)
    shape = rng.choice(("form", "blocks", "both"))
    file: Draft = {"name": "random", "title": made.text("Title"), "languages": tags}
    file["budget"] = "60" if shape != "form" else rng.choice(("0.5", "2", "6"))
    if rng.random() < 0.5:
        file["consent"] = made.text("Please")
    if rng.random() < 0.5:
        file["strata"] = [made.plain() for _ in range(rng.randint(1, 2))]
        file["accept_small_cells"] = "true"
    if shape != "form":
        file["blocks"] = [made.block(bool(file.get("strata"))) for _ in range(rng.randint(1, 3))]
    if shape != "blocks":
        file["form"] = made.form() | ({"epsilon": "1.5"} if shape == "both" else {})
    if rng.random() < 0.3 and not any("prior" in block for block in file.get("blocks", [])):
        for block in (*file.get("blocks", ()), file.get("form", {})):
            for question in block.get("questions", ()):
                question.pop("anchor", None)
        item = made.plain()
        file["instructed"] = item | {"answer": rng.choice(item["choices"])["id"]}
    return file


class _Maker:
    def __init__(self, rng: random.Random, tags: Sequence[str]) -> None:
        self.rng, self.tags, self.used = rng, tags, 0

    def text(self, word: str) -> dict[str, str]:
        self.used += 1
        return {
            tag: f"{word} {self.rng.choice(_WORDS)} {self.used}{'' if self.rng.random() < 0.3 else tag}"
            for tag in self.tags
        }

    def name(self, word: str) -> str:
        self.used += 1
        return f"{word}{self.rng.choice(('', '-', '_'))}{self.used}"

    def plain(self) -> dict[str, Any]:
        """Return a question with the choices that a public question can have."""
        choices = self.choices(self.rng.randint(2, 4), roles=False)
        return {"id": self.name("p"), "text": self.text("Plain"), "choices": choices}

    def choices(self, n: int, *, roles: bool = True) -> list[dict[str, Any]]:
        made = [{"id": self.name("c"), "label": self.text("Choice")} for _ in range(n)]
        for role in ("no_answer", "not_applicable") if roles else ():
            if self.rng.random() < 0.3:
                choice = {"id": self.name("r"), "label": self.text("None"), "role": role}
                made.insert(self.rng.randint(0, len(made)), choice)
        return made

    def question(self) -> dict[str, Any]:
        rng = self.rng
        question: dict[str, Any] = {"id": self.name("q"), "text": self.text("Question")}
        kind = rng.choice(("single", "yes-no", "scale", "number", "own ranges"))
        if kind == "yes-no" and "sw" not in self.tags:
            return question | {"type": "yes-no"}
        if kind == "number":
            return question | {"ranges": self.lows()}
        choices = self.choices(rng.randint(2, 4))
        answers = [one for one in choices if "role" not in one]
        if kind == "own ranges":
            for low, one in zip(self.lows(len(answers)), answers, strict=True):
                one["from"] = low
        elif kind == "scale":
            for i, one in enumerate(answers):
                one["score"] = rng.choice((str(i), f"{i}.5", f"-{i + 1}"))
        return question | {"choices": choices}

    def lows(self, n: int | None = None) -> list[int]:
        lows = sorted(self.rng.sample(range(-5, 90), n or self.rng.randint(2, 5)))
        assert all(a < b for a, b in pairwise(lows))
        return lows

    def known(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return what is known of all people's answers to a question; {} if it may have no such thing."""
        choices = question.get("choices", [{}] * len(question.get("ranges", "yn")))
        if {"boxes", "ask_if"} & set(question) or any("role" in one for one in choices):
            return {}
        counts = [*(self.rng.randint(0, 50) for _ in choices[1:]), 51]
        return {"anchor": {"counts": counts, "source": self.rng.choice(_WORDS)}}

    def block(self, has_strata: bool) -> dict[str, Any]:
        questions = [self.question() for _ in range(self.rng.randint(1, 2))]
        block: dict[str, Any] = {
            "id": self.name("b"),
            "questions": questions,
            "notion": "ldp",
            "epsilon": "1",
        }
        is_known = len(questions) == 1 and self.rng.random() < 0.5
        choices = questions[0].get("choices", ())
        if self.rng.random() < 0.3 and len(questions) == 1 and choices and not has_strata:
            row = [self.rng.randint(10, 99) for _ in choices]
            block |= {"notion": "lip", "ceiling_cap": "2"}
            block["prior"] = {
                "secret": "s",
                "secrets": ["a", "b"],
                "source": "made up",
                "joint": [row, row[::-1]],
            }
        if is_known and "prior" not in block:
            questions[0] |= self.known(questions[0])
        return block

    def form(self) -> dict[str, Any]:
        rng, questions = self.rng, []
        items: list[tuple[str, list[str]]] = []
        for _ in range(rng.randint(2, 5)):
            question = self.form_question()
            if items and rng.random() < 0.3:
                source, choices = rng.choice(items)
                question["ask_if"] = {"question": source, "choices": [rng.choice(choices)]}
                listed = question.get("boxes", question.get("choices"))
                if listed is None or all(one.get("role") != "not_applicable" for one in listed):
                    question["not_applicable"] = self.text("Not for me")
                    for name in ("contrast", "expected") if "boxes" not in question else ():
                        if name in question:
                            question[name].append("7")
            names = [f"{question['id']}-{box['id']}" for box in question.get("boxes", ())]
            choices = [one["id"] for one in question.get("choices", ())]
            if names or choices:
                items += [(name, choices or ["no", "yes"]) for name in names or [question["id"]]]
            questions.append(question)
        form: dict[str, Any] = {"questions": questions}
        if len(items) > 1 and rng.random() < 0.5:
            form["cross_tables"] = [[name for name, _ in rng.sample(items, 2)]]
        elif rng.random() < 0.8:
            form["ask"] = "all"
            self.add_anchor(questions)
        return form

    def add_anchor(self, questions: list[dict[str, Any]]) -> None:
        """Let one of these questions be an anchor, or add one that asks one of them again."""
        asked = [one for one in questions if not {"boxes", "ask_if"} & set(one)]
        if asked:
            question = self.rng.choice(asked)
            known = self.known(question)
            if known and self.rng.random() < 0.6:
                question |= known
            else:
                questions.append(self.again(question))

    def again(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return a question that asks this one again."""
        wanted = {"wanted", "contrast", "expected"}
        kept = {name: part for name, part in question.items() if name not in wanted}
        asked = {"id": self.name("again"), "text": self.text("Again")}
        return kept | asked | {"anchor": {"repeats": question["id"]}}

    def form_question(self) -> dict[str, Any]:
        rng = self.rng
        if rng.random() < 0.25:
            question: dict[str, Any] = {
                "id": self.name("m"),
                "type": "multi",
                "text": self.text("Boxes"),
            }
            question["boxes"] = self.choices(rng.randint(2, 3))
            question["choices"] = [{"id": name, "label": self.text(name)} for name in ("no", "yes")]
            return question | ({"expected": [3, 1]} if rng.random() < 0.3 else {})
        question = self.question()
        choices = question.get("choices", ())
        n = len(question["ranges"]) if "ranges" in question else len(choices) or 2
        scores = {one.get("score") for one in choices if "role" not in one}
        if rng.random() < 0.3:
            question["importance"] = rng.choice(("2", "0.5"))
        if rng.random() < 0.3:
            question["expected"] = [rng.randint(1, 50) for _ in range(n)]
        wanted = rng.choice(("shares", "shares", "mean", "contrast"))
        if wanted == "contrast":
            question |= {"wanted": wanted, "contrast": [str(i) for i in range(n)]}
        elif wanted == "mean" and None not in scores and len(scores) > 1:
            question["wanted"] = wanted
        return question
