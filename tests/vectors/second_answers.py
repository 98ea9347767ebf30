# SPDX-License-Identifier: Apache-2.0
"""Second implementation of question types and of what a device does after a reply, written only from
docs/spec/3-documents.md (3.5, 3.9) and docs/protocol.md (section 7)."""

import json
import re
from itertools import groupby, pairwise
from typing import Any

from tests.vectors.second_bytes import Refused

Question = dict[str, Any]
_UNSAFE = re.compile("[\u0000-\u001f\u202a-\u202e\u2066-\u2069]")
_SCORE = re.compile(r"-?(0|[1-9][0-9]{0,8})(\.[0-9]{0,5}[1-9])?")


def require_ways(questions: list[Question]) -> None:
    """Raise Refused("4") unless the questions of a document follow section 3.5."""
    checks = (_is_choice_list, _is_box, _is_figure, _is_anchor)
    if not all(check(question) for check in checks for question in questions):
        raise Refused("4")
    for i, question in enumerate(questions):
        rule = question.get("ask_if")
        if rule is not None and not _is_rule(rule, question, questions[:i]):
            raise Refused("4")
        if not _is_repetition(question, questions[:i]):
            raise Refused("4")
    boxed = [list(boxes) for of, boxes in groupby(questions, _of) if of is not None]
    names = [boxes[0]["box"]["of"] for boxes in boxed]
    if len(set(names)) < len(names) or set(names) & {question["id"] for question in questions}:
        raise Refused("4")
    for boxes in boxed:
        texts = [(one["box"]["text"], one.get("ask_if")) for one in boxes]
        roles = [one["box"].get("role") for one in boxes]
        named = [role for role in roles if role]
        skippable = texts[0][1] is None or "not_applicable" in roles
        if any(text != texts[0] for text in texts) or None not in roles or not skippable:
            raise Refused("4")
        if len(set(named)) < len(named):
            raise Refused("4")


def _of(question: Question) -> str | None:
    return question["box"]["of"] if "box" in question else None


def _is_choice_list(question: Question) -> bool:
    choices = question["choices"]
    roles = [choice["role"] for choice in choices if "role" in choice]
    plain = [choice for choice in choices if "role" not in choice]
    lows = [choice["from"] for choice in plain if "from" in choice]
    scores = [choice["score"] for choice in plain if "score" in choice]
    return (
        bool(plain)
        and len(set(roles)) == len(roles)
        and not any(
            "role" in choice and ("from" in choice or "score" in choice) for choice in choices
        )
        and len(lows) in (0, len(plain))
        and len(scores) in (0, len(plain))
        and all(a < b for a, b in pairwise(lows))
        and all(_SCORE.fullmatch(score) and score != "-0" for score in scores)
    )


def _is_box(question: Question) -> bool:
    if "box" not in question:
        return True
    return (
        question["id"].startswith(question["box"]["of"] + "-")
        and len(question["id"]) > len(question["box"]["of"]) + 1
        and [choice["id"] for choice in question["choices"]] == ["no", "yes"]
        and all(set(choice) == {"id", "label"} for choice in question["choices"])
    )


def _is_figure(question: Question) -> bool:
    if "wanted" not in question:
        return True
    figure, numbers = question["wanted"]["figure"], question["wanted"].get("numbers")
    plain = [choice for choice in question["choices"] if "role" not in choice]
    return (
        "box" not in question
        and (figure != "mean" or all("score" in choice for choice in plain))
        and (numbers is not None) == (figure == "contrast")
        and (numbers is None or len(numbers) == len(question["choices"]))
    )


def _is_anchor(question: Question) -> bool:
    if "anchor" not in question:
        return True
    if {"box", "ask_if"} & set(question):
        return False
    if "repeats" in question["anchor"]:
        return True
    counts, choices = question["anchor"]["counts"], question["choices"]
    return (
        not any("role" in choice for choice in choices)
        and len(counts) == len(choices)
        and sum(counts) > 0
        and not _UNSAFE.search(question["anchor"]["source"])
    )


def _is_repetition(question: Question, earlier: list[Question]) -> bool:
    if "repeats" not in question.get("anchor", {}):
        return True
    asked_of_all = {one["id"]: one for one in earlier if not {"box", "ask_if"} & set(one)}
    first = asked_of_all.get(question["anchor"]["repeats"], {"choices": []})
    return [choice["id"] for choice in first["choices"]] == [
        choice["id"] for choice in question["choices"]
    ]


def _is_rule(rule: dict[str, Any], question: Question, earlier: list[Question]) -> bool:
    known = {one["id"]: {choice["id"] for choice in one["choices"]} for one in earlier}
    if not set(rule["choices"]) <= known.get(rule["question"], set()):
        return False
    return "box" in question or any(
        choice.get("role") == "not_applicable" for choice in question["choices"]
    )


def settled(given: dict[str, Any], questions: list[Question]) -> dict[str, str]:
    """Return a choice for every question. Raises Refused with the question's id or ""."""
    chosen: dict[str, str] = {}
    boxed = {_of(question) for question in questions} - {None}
    for question in questions:
        rule, name = question.get("ask_if"), question["id"]
        if rule is not None and chosen[rule["question"]] not in rule["choices"]:
            chosen[name] = _skipped(question)
        elif "box" in question:
            chosen[name] = _ticked(question, given, questions)
        else:
            chosen[name] = _choice(question, given)
    for of in sorted(filter(None, boxed)):
        ticked = [q for q in questions if _of(q) == of and chosen[q["id"]] == "yes"]
        if len(ticked) > 1 and any("role" in q["box"] for q in ticked):
            raise Refused(of)
    if set(given) - {question["id"] for question in questions} - boxed:
        raise Refused("")
    return chosen


def _skipped(question: Question) -> str:
    if "box" in question:
        return "yes" if question["box"].get("role") == "not_applicable" else "no"
    role_by_choice = {choice["id"]: choice.get("role") for choice in question["choices"]}
    return next(name for name, role in role_by_choice.items() if role == "not_applicable")


def _choice(question: Question, given: dict[str, Any]) -> str:
    answer, name = given.get(question["id"]), question["id"]
    if isinstance(answer, str) and answer in {choice["id"] for choice in question["choices"]}:
        return answer
    is_number = isinstance(answer, int) and not isinstance(answer, bool) and abs(answer) < 2**53
    reached = [
        choice["id"]
        for choice in question["choices"]
        if is_number and "from" in choice and choice["from"] <= answer
    ]
    if not reached:
        raise Refused(name)
    return str(reached[-1])


def _ticked(question: Question, given: dict[str, Any], questions: list[Question]) -> str:
    of, name = question["box"]["of"], question["id"]
    if of not in given:
        return _choice(question, given)
    ticked = given[of]
    known = {one["id"][len(of) + 1 :] for one in questions if _of(one) == of}
    both = name in given
    if both or not isinstance(ticked, list) or any(not isinstance(box, str) for box in ticked):
        raise Refused(of)
    if not set(ticked) <= known:
        raise Refused(of)
    return "yes" if name[len(of) + 1 :] in ticked else "no"


FINAL = {
    403: {"token_foreign"},
    409: {"id_conflict", "token_spent"},
    410: {"closed"},
    422: {"symbol_unknown", "strata_invalid"},
}


def receipt(report_id: str, status: int, text: str, has_closed: bool) -> list[str]:
    """Return the state of a report after a reply, and its code (protocol, section 7)."""
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    body = body if isinstance(body, dict) else {}
    is_ours = status in (200, 201) and body.get("id") == report_id
    if is_ours and body.get("status") in ("accepted", "duplicate"):
        return ["sent", body["status"]]
    named = str(body.get("code")) if isinstance(body.get("code"), str) else ""
    is_named = re.fullmatch("[a-z_]{1,40}", named) is not None
    code = named if is_named and body.get("status") == status else ""
    if code in FINAL.get(status, ()):
        return ["refused", code]
    if not code or any(code in codes for codes in FINAL.values()):
        code = "no_receipt" if status < 300 else f"http_{status}"
    if has_closed and code != "too_early" and status < 500 and status not in (408, 425, 429):
        return ["refused", "closed"]
    return ["queued", code]
