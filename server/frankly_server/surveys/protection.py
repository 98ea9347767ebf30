# SPDX-License-Identifier: Apache-2.0
"""Protection step of the wizard: the secret, its notion and level, and the questions of the block.

The page describes its block completely: a question that is no longer selected gets a separate
block. Several notions at once, additional priors, (ε, δ) and the parameters of a family are only
possible in a survey file.
"""

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Final

from frankly_design.families import Explicit
from frankly_design.requests.levels import ONE_SIDED
from frankly_protocol.audit import parse_epsilon
from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.csv_prior import CountTable
from frankly_server.surveys.definition import BlockDefinition
from frankly_server.surveys.editing import Draft, block_of, slug, with_budget
from frankly_server.surveys.fields import folded
from frankly_server.surveys.question_definition import QuestionDefinition

BACKSTOP: Final = "2.9957"
"""ln 20, rounded down: default ceiling in nats, in case the prior is false."""
_MOST_OF_ONE: Final = 12
"""Answers of which one can be protected; the search for more takes longer than a page waits."""
_OPEN: Final = "inf"
"""Level in survey files for a pair of answers without a promise."""
NOTIONS: Final = ("lip", "secret-ldp", "alip", "srlip", "rldp")
"""Notions that the step offers for a secret other than the answer (ldp protects the answer). pml
and pmc are one-sided alip under their own names."""


@dataclass(frozen=True, slots=True)
class Protection:
    """Fields of the protection step.

    levels : the notion and its levels, as in a survey file. The notion of a secret is lip by
    default; an answer is always protected by ldp. secret : name of a secret other than the answer,
    or None. counts : numbers of people by secret and answer, of all people or by stratum. other :
    id of the question that is the secret; None if no question asks for the secret. together : ids
    of further questions that are randomised with this one. backstop : LDP level of the answer in
    nats, in addition to the notion, or None. source : origin of the counts. public : the admin's
    statement that the counts are public. one : id of the only choice that is sensitive, or None.
    """

    levels: Mapping[str, Any]
    mechanism: str = "optimal"
    objective: str = "variance"
    secret: str | None = None
    counts: CountTable | None = None
    source: str = ""
    public: bool = False
    backstop: str | None = BACKSTOP
    accept_identity: bool = False
    other: str | None = None
    together: tuple[str, ...] = ()
    one: str | None = None

    @property
    def notion(self) -> str:
        """The notion that protects a secret; lip by default."""
        return str(self.levels.get("notion", "lip"))


def protect(draft: Draft, block_id: str, protection: Protection) -> Draft:
    """Return the draft with a block's protection replaced and its questions regrouped.

    Raises InvalidInput: not_found, unsupported, field_missing, prior_shape if the counts name
    other answers or secrets.
    """
    edited = copy.deepcopy(draft)
    block = block_of(edited, block_id)
    every_question = [question for entry in edited["blocks"] for question in entry["questions"]]
    questions = {question["id"]: question for question in every_question}
    _regroup(edited, block, protection)
    # The page is complete, so old values of fields that it does not set must not remain.
    for name in [name for name in block if name not in ("id", "questions")]:
        del block[name]
    block |= {"mechanism": protection.mechanism, "objective": protection.objective}
    if protection.accept_identity:
        block["accept_identity"] = True
    if protection.one is not None:
        block |= _of_one_answer(block, protection.one, protection.levels.get("epsilon", ""))
        return with_budget(edited)
    if protection.secret is None and protection.other is None:
        block |= {"notion": "ldp", "epsilon": protection.levels.get("epsilon", "")}
        return with_budget(edited)
    block |= _levels(block, protection)
    block["prior"] = _prior(block, protection, questions)
    if protection.backstop is not None:
        block["ceiling_cap"] = protection.backstop
    return with_budget(edited)


def sensitive_answer(block: BlockDefinition) -> tuple[str, str] | None:
    """Return the only answer that a block protects, and its level in nats; None for other protections."""
    if block.notion != "metric-ldp" or len(block.questions) > 1 or block.prior is not None:
        return None
    ids = [choice.id for choice in block.questions[0].choices]
    for choice_id, row in zip(ids, block.epsilons, strict=False):
        level = next((level for level in row if level not in (None, _OPEN)), None)
        if level is not None and block.epsilons == _levels_of_one(ids, choice_id, level):
            return choice_id, level
    return None


def _levels_of_one(ids: Sequence[str], sensitive: str, level: str) -> tuple[tuple[str, ...], ...]:
    """Return the level of each answer (row) against each other: only the row of one is limited."""
    return tuple(
        tuple(level if row == sensitive != column else _OPEN for column in ids) for row in ids
    )


def _of_one_answer(block: Draft, sensitive: str, level: str) -> Draft:
    """Return the protection of one answer: nobody becomes much surer of it, but perhaps of the others.

    The ceiling limits what any report says about any answer, so that devices can afford it.
    """
    if len(block["questions"]) > 1:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "one answer can be protected only in a question that is randomised by itself",
            "together",
        )
    ids = [choice["id"] for choice in block["questions"][0]["choices"]]
    if sensitive not in ids:
        raise InvalidInput(Problem.FIELD_MISSING, "choose the answer that is sensitive", "one")
    if len(ids) > _MOST_OF_ONE:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"one answer can be protected among at most {_MOST_OF_ONE}: merge some of the others, or protect every "
            "answer",
            "one",
        )
    nats = parse_epsilon(level)
    rows = [list(row) for row in _levels_of_one(ids, sensitive, level)]
    cap = BACKSTOP if nats <= Fraction(BACKSTOP) else level
    return {"notion": "metric-ldp", "epsilons": rows, "ceiling_cap": cap}


def main_question(block: BlockDefinition) -> QuestionDefinition:
    """Return the main question of a block's page: the first that is not the secret."""
    first = block.questions[0]
    secret = block.prior.secret if block.prior else None
    return block.questions[1] if first.id == secret and len(block.questions) > 1 else first


def unsupported_features(block: BlockDefinition) -> tuple[str, ...]:
    """Return the features of the block that saving the page's form would remove."""
    cap, prior, one = block.ceiling_cap, block.prior, sensitive_answer(block)
    usual = BACKSTOP if one is None or Fraction(one[1]) <= Fraction(BACKSTOP) else one[1]
    features = {
        "several notions at once": bool(block.notions),
        f"the notion {block.notion}": block.notion is not None
        and block.notion not in ("ldp", *NOTIONS, *ONE_SIDED)
        and one is None,
        "further priors": bool(block.priors),
        "an expected distribution of the answers": prior is not None and prior.secret is None,
        "plausible truths": block.truths is not None,
        # The form has one ceiling, and none for the answer itself.
        f"a ceiling of {cap} nats": cap is not None
        and (block.notion == "ldp" or Decimal(cap) != Decimal(usual)),
        "no ceiling": one is not None and cap is None,
        "a ball of another order than 2": block.robust is not None
        and Decimal(block.robust.order) != 2,
        "other attributes than its questions": block.notion == "srlip"
        and [int(n) for n in block.attributes] != [len(one.choices) for one in block.questions],
        "the objective hamming": block.objective == "hamming",
        "the worst target as criterion": block.criterion != "total",
        "shares that cannot be estimated": block.accept_unidentifiable,
        "rows of RLDP with s₁ = s₂": block.diagonal,
        "a family's own parameters": block.explicit != Explicit(),
    }
    return tuple(feature for feature, holds in features.items() if holds)


def _regroup(draft: Draft, block: Draft, protection: Protection) -> None:
    """Move the selected questions into the block, the secret first for rldp; split off others."""
    before = {question["id"]: question for question in block["questions"]}
    names = list(before)
    secret_id = (block.get("prior") or {}).get("secret")
    # The same rule as in `main_question`.
    main = names[1] if names[0] == secret_id and len(names) > 1 else names[0]
    selected = list(dict.fromkeys([main, *protection.together]))
    _require_fits(protection, main, selected)
    if protection.other is not None and protection.notion == "rldp":
        selected = list(dict.fromkeys([protection.other, *selected]))
    gathered = [before.get(name) or _take_question(draft, block, name) for name in selected]
    released = [question for name, question in before.items() if name not in selected]
    place = draft["blocks"].index(block)
    block["questions"] = gathered
    taken = [block["id"] for block in draft["blocks"]]
    # New blocks follow this one, so that respondents still see the questions in the same order.
    draft["blocks"][place + 1 : place + 1] = [
        {"id": slug(q["id"], taken), "questions": [q], "notion": "ldp", "epsilon": "1"}
        for q in released
    ]


def _require_fits(protection: Protection, main: str, selected: Sequence[str]) -> None:
    """Raise InvalidInput if the notion cannot protect these questions.

    main : id of the block's main question. selected : ids of it and of those randomised with it.
    """
    is_robust = protection.notion == "rldp"
    # For rldp the device randomises the pair (secret, answer), so it needs the secret.
    if is_robust and protection.secret is not None and protection.other is None:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "this promise needs the secret as a question: add it, or choose another promise",
            "notion",
        )
    if protection.other == main:
        raise InvalidInput(Problem.UNSUPPORTED, "the secret must be a different question", "other")
    if protection.other in selected and not is_robust:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "the secret cannot be randomised together with these questions: leave it out",
            "together",
        )
    # srlip protects against people who know some of the answers, so it needs several questions.
    if protection.notion == "srlip" and protection.secret is not None and len(selected) < 2:
        raise InvalidInput(
            Problem.FIELD_MISSING,
            "this promise is about several questions together: select at least one more",
            "together",
        )


def _take_question(draft: Draft, block: Draft, name: str) -> Draft:
    """Remove a question and its block from the draft, and return it.

    Raises InvalidInput: not_found, unsupported if its block contains other questions.
    """
    for candidate in draft["blocks"]:
        ids = [question["id"] for question in candidate["questions"]]
        if candidate is not block and name in ids:
            if len(ids) > 1:
                raise InvalidInput(
                    Problem.UNSUPPORTED,
                    "this question is already randomised with another one: change that one first",
                    "together",
                )
            draft["blocks"].remove(candidate)
            question: Draft = candidate["questions"][0]
            return question
    raise InvalidInput(Problem.NOT_FOUND, "there is no such protected question", "together")


def _levels(block: Draft, protection: Protection) -> Draft:
    if protection.notion not in (*NOTIONS, *ONE_SIDED):
        raise InvalidInput(
            Problem.UNSUPPORTED,
            f"choose one of {', '.join(NOTIONS)}; other notions need a survey file",
            "notion",
        )
    levels: Draft = {"notion": protection.notion, **protection.levels}
    if protection.notion == "srlip":
        levels["attributes"] = [str(len(question["choices"])) for question in block["questions"]]
    return levels


def _prior(block: Draft, protection: Protection, questions: Mapping[str, Draft]) -> Draft:
    counts = protection.counts
    if counts is None:
        raise InvalidInput(
            Problem.FIELD_MISSING,
            "a secret other than the answer needs joint counts of secret and answer",
            "counts",
        )
    # For rldp the first question is the secret: its choices are the rows.
    columns = block["questions"][1:] if protection.notion == "rldp" else block["questions"]
    order = _order(counts.answers, _names(columns), "first line", "answers")
    if protection.other is None:
        rows: Sequence[int] = range(len(counts.secrets))
        secrets: list[str] = []
        for name in counts.secrets:
            # Each id must differ from the previous ones.
            secrets.append(_short(name, secrets, "counts"))
    else:
        secret_question = questions[protection.other]
        rows = _order(counts.secrets, _names([secret_question]), "first column", "secrets")
        secrets = [choice["id"] for choice in secret_question["choices"]]
    name = protection.other or _short(protection.secret or "", (), "name")
    if protection.other is None and name in questions:
        raise InvalidInput(
            Problem.UNSUPPORTED,
            "a question of this survey has this name: choose “The answer to another question”, or another name",
            "name",
        )
    if not protection.source:
        raise InvalidInput(Problem.FIELD_MISSING, "say where the counts come from", "source")
    prior: Draft = {"secret": name, "secrets": secrets, "source": protection.source}
    if counts.strata:
        prior["strata"] = [
            {"when": dict(when), "joint": [[joint[s][x] for x in order] for s in rows]}
            for when, joint in counts.strata
        ]
    else:
        prior["joint"] = [[counts.joint[s][x] for x in order] for s in rows]
    return prior | ({"public": True} if protection.public else {})


def _short(name: str, used: Collection[str], field: str) -> str:
    """Return a name as an id, which respondents read. Raises InvalidInput if nobody could recognise it."""
    made = slug(name, used)
    if not name or (made.partition("-")[0] == "q" and folded(name)[:1] != "q"):
        raise InvalidInput(
            Problem.FIELD_MISSING if not name else Problem.UNSUPPORTED,
            "give it a short name in Latin letters, because respondents read it",
            field,
        )
    return made


def _names(questions: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the accepted names of each joint answer, in order: ids, or labels of one language."""
    names = []
    for cell in product(*(question["choices"] for question in questions)):
        languages = cell[0]["label"]
        labels = (
            "-".join(choice["label"].get(language, "") for choice in cell) for language in languages
        )
        names.append(("-".join(choice["id"] for choice in cell), *labels))
    return names


def _order(
    labels: Sequence[str], names: Sequence[tuple[str, ...]], where: str, kind: str
) -> list[int]:
    """Return the position of each name in `labels`; raises prior_shape if the names differ.

    Columns are matched by name, because otherwise a wrong order would go unnoticed.
    """
    places = {folded(name): i for i, name in enumerate(labels)}
    folded_names = [[folded(name) for name in accepted] for accepted in names]
    order = [next((places[n] for n in accepted if n in places), None) for accepted in folded_names]
    if None in order or len(labels) != len(names):
        raise InvalidInput(
            Problem.PRIOR_SHAPE,
            f"the {where} must name the {kind} {', '.join(accepted[0] for accepted in names)}, "
            "each once, in any order",
            "counts",
        )
    return [place for place in order if place is not None]
