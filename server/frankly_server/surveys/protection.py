# SPDX-License-Identifier: Apache-2.0
"""The wizard's protection step: what is the secret, what may a report tell of it, and which questions go together.

A form says all of it, so that a block is what its last form said: questions that it does not name any more stand by
themselves again. What needs more than a form (several notions at once, further priors, (ε, δ), a family's own
parameters) is written in a file.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from frankly_protocol.errors import InvalidInput
from frankly_protocol.problems import Problem

from frankly_server.surveys.csv_prior import CountTable
from frankly_server.surveys.definition import BlockDefinition, QuestionDefinition
from frankly_server.surveys.editing import Draft, block_of, slug, with_budget
from frankly_server.surveys.fields import folded

BACKSTOP: Final = "2.9957"
"""ln 20, rounded down: what a report may tell to somebody for whom the prior is false (DESIGN §2)."""
NOTIONS: Final = ("lip", "secret-ldp", "alip", "srlip", "rldp")
"""What the step offers for a secret beside the answer; for the answer itself it is ldp."""
_OWN_LEVELS: Final = {"alip": ("epsilon_low", "epsilon_high")}


@dataclass(frozen=True, slots=True)
class Protection:
    """What the protection step asks for.

    secret : None if the answer itself is protected; else the name of what is, with `counts` of it by answer, of
    everybody or for each stratum.
    other : the id of the question that is the secret, None for something that is not asked. notion : of NOTIONS, with
    its levels in nats as decimal texts: epsilon, or for alip epsilon_low and epsilon_high ("inf" for no promise).
    sample, beta : for rldp, of how many people the counts are, and the risk that the truth lies outside their ball.
    together : ids of further questions that are randomised with this one. backstop : nats of LDP beside a prior, or
    None. source : where the counts are from. public : the admin's word that they are public.
    """

    epsilon: str
    mechanism: str = "optimal"
    objective: str = "variance"
    secret: str | None = None
    counts: CountTable | None = None
    source: str = ""
    public: bool = False
    backstop: str | None = BACKSTOP
    accept_identity: bool = False
    notion: str = "lip"
    other: str | None = None
    epsilon_low: str = ""
    epsilon_high: str = ""
    sample: str = ""
    beta: str = "0.05"
    together: tuple[str, ...] = ()


def protect(draft: Draft, block_id: str, wanted: Protection) -> Draft:
    """Return the draft with a block's protection replaced, and its questions gathered.

    Raises InvalidInput: not_found, unsupported, field_missing, prior_shape for counts of other answers or secrets.
    """
    found = copy.deepcopy(draft)
    block = block_of(found, block_id)
    questions = {question["id"]: question for each in found["blocks"] for question in each["questions"]}
    _gather(found, block, wanted)
    for name in [name for name in block if name not in ("id", "questions")]:
        del block[name]
    block |= {"mechanism": wanted.mechanism, "objective": wanted.objective}
    if wanted.accept_identity:
        block["accept_identity"] = True
    if wanted.secret is None and wanted.other is None:
        block |= {"notion": "ldp", "epsilon": wanted.epsilon}
        return with_budget(found)
    block |= _levels(block, wanted)
    block["prior"] = _prior(block, wanted, questions)
    if wanted.backstop is not None:
        block["ceiling_cap"] = wanted.backstop
    return with_budget(found)


def main_question(block: BlockDefinition) -> QuestionDefinition:
    """Return the question that a block's step is about: the first, but where that is the secret, the next."""
    first = block.questions[0]
    secret = block.prior.secret if block.prior else None
    return block.questions[1] if first.id == secret and len(block.questions) > 1 else first


def cannot(block: BlockDefinition) -> tuple[str, ...]:
    """Return, in words, what a block has that the step cannot say: sending its form would lose it."""
    told = {
        "several notions at once": bool(block.notions),
        f"the notion {block.notion}": block.notion is not None and block.notion not in ("ldp", *NOTIONS),
        "further priors": bool(block.priors),
        "the objective hamming": block.objective == "hamming",
        "the worst target as criterion": block.criterion != "total",
        "shares that cannot be estimated": block.accept_unidentifiable,
        "rows of RLDP with s₁ = s₂": block.diagonal,
        "a family's own parameters": bool(block.own()),
    }
    return tuple(words for words, holds in told.items() if holds)


def _gather(draft: Draft, block: Draft, wanted: Protection) -> None:
    """Put the questions that go together into the block, in order: for rldp the secret first. Others leave it."""
    before = {question["id"]: question for question in block["questions"]}
    names = list(before)
    known = (block.get("prior") or {}).get("secret")
    main = names[1] if names[0] == known and len(names) > 1 else names[0]  # as `main_question`
    if wanted.notion == "rldp" and wanted.secret is not None and wanted.other is None:
        words = "the device must know the secret to protect it so: ask it as a question, or take another promise"
        raise InvalidInput(Problem.UNSUPPORTED, words, "notion")
    if wanted.other == main:
        raise InvalidInput(Problem.UNSUPPORTED, "the secret is another question than this one", "other")
    first = [wanted.other] if wanted.other is not None and wanted.notion == "rldp" else []
    ids = list(dict.fromkeys([*first, main, *wanted.together]))
    if wanted.other in ids and not first:
        words = "the secret cannot be among the questions that are randomised together: leave it by itself"
        raise InvalidInput(Problem.UNSUPPORTED, words, "together")
    if wanted.notion == "srlip" and wanted.secret is not None and len(ids) < 2:
        words = "this promise is about several questions together: tick at least one more"
        raise InvalidInput(Problem.FIELD_MISSING, words, "together")
    gathered = [before.get(name) or _taken(draft, block, name) for name in ids]
    left = [question for name, question in before.items() if name not in ids]
    place = draft["blocks"].index(block)
    block["questions"] = gathered
    alone = [{"id": _free(draft, q["id"]), "questions": [q], "notion": "ldp", "epsilon": "1"} for q in left]
    draft["blocks"][place + 1 : place + 1] = alone


def _taken(draft: Draft, block: Draft, name: str) -> Draft:
    """Take a question out of its own block, which ends with it. Raises InvalidInput: not_found, unsupported."""
    for other in draft["blocks"]:
        if other is not block and any(question["id"] == name for question in other["questions"]):
            if len(other["questions"]) > 1:
                words = "this question goes together with another one already: change that one first"
                raise InvalidInput(Problem.UNSUPPORTED, words, "together")
            draft["blocks"].remove(other)
            found: Draft = other["questions"][0]
            return found
    raise InvalidInput(Problem.NOT_FOUND, "there is no such protected question", "together")


def _free(draft: Draft, name: str) -> str:
    return slug(name, [block["id"] for block in draft["blocks"]])


def _levels(block: Draft, wanted: Protection) -> Draft:
    if wanted.notion not in NOTIONS:
        raise InvalidInput(Problem.UNSUPPORTED, f"one of {', '.join(NOTIONS)}; others in a file", "notion")
    levels: Draft = {"notion": wanted.notion}
    for name in _OWN_LEVELS.get(wanted.notion, ("epsilon",)):
        levels[name] = getattr(wanted, name)
    if wanted.notion == "srlip":
        levels["attributes"] = [str(len(question["choices"])) for question in block["questions"]]
    if wanted.notion == "rldp":
        levels["robust"] = {"order": "2", "n": wanted.sample, "beta": wanted.beta}
    return levels


def _prior(block: Draft, wanted: Protection, questions: Mapping[str, Draft]) -> Draft:
    counts = wanted.counts
    if counts is None:
        raise InvalidInput(Problem.FIELD_MISSING, "a secret beside the answer needs counts of both together", "counts")
    columns = block["questions"][1:] if wanted.notion == "rldp" else block["questions"]
    order = _order(counts.answers, _names(columns), "first line", "answers")
    if wanted.other is None:
        rows: Sequence[int] = range(len(counts.secrets))
        secrets: list[str] = []
        for name in counts.secrets:
            secrets.append(slug(name, secrets))
    else:
        asked = questions[wanted.other]
        rows = _order(counts.secrets, _names([asked]), "first column", "secrets")
        secrets = [choice["id"] for choice in asked["choices"]]
    prior: Draft = {"secret": wanted.other or slug(wanted.secret or ""), "secrets": secrets, "source": wanted.source}
    if counts.strata:
        prior["strata"] = [
            {"when": dict(when), "joint": [[joint[s][x] for x in order] for s in rows]} for when, joint in counts.strata
        ]
    else:
        prior["joint"] = [[counts.joint[s][x] for x in order] for s in rows]
    return prior | ({"public": True} if wanted.public else {})


def _names(questions: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return how each joint answer may be called, in order: by ids, or by labels of any language."""
    found = []
    for cell in product(*(question["choices"] for question in questions)):
        languages = cell[0]["label"]
        labels = ("-".join(choice["label"].get(language, "") for choice in cell) for language in languages)
        found.append(("-".join(choice["id"] for choice in cell), *labels))
    return found


def _order(given: Sequence[str], names: Sequence[tuple[str, ...]], where: str, what: str) -> list[int]:
    """Return where each name stands in what was given. A wrong order must not go unseen: names decide, not places."""
    places = {folded(name): i for i, name in enumerate(given)}
    order = [next((places[folded(name)] for name in called if folded(name) in places), None) for called in names]
    if None in order or len(given) != len(names):
        words = f"the {where} names the {what} {', '.join(called[0] for called in names)}, each once, in any order"
        raise InvalidInput(Problem.PRIOR_SHAPE, words, "counts")
    return [place for place in order if place is not None]
