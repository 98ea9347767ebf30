# SPDX-License-Identifier: Apache-2.0
"""One survey for every mechanism that the designer knows."""

from typing import Any

import yaml

PEOPLE = 2
FOUR = [[40, 110, 210, 140], [90, 80, 60, 20]]
TWO = [[60, 150], [90, 20]]
ROBUST = {"order": "2", "n": 2000, "beta": "0.05"}
LIP = {"notion": "lip", "epsilon": "0.5"}
ALIP = {"notion": "alip", "epsilon_high": "0.25"}
RLDP = {"notion": "rldp", "epsilon": "0.5", "robust": ROBUST, "joint": TWO, "choices": [2, 2]}
PARTS = {"attributes": [2, 2], "choices": [2, 2]}
SOME = {"accept_unidentifiable": True}
# Name of the case (which begins with its mechanism): notion, levels, prior, choices, further
# fields.
CASES: dict[str, dict[str, Any]] = {
    "optimal": {"notion": "ldp", "epsilon": "1", "choices": [4]},
    "optimal under srlip": {
        "notion": "srlip", "epsilon": "0.5", **PARTS, "joint": FOUR, "ceiling_cap": "3",
    },
    "optimal under levels of pairs": {
        "notion": "metric-ldp", "epsilons": [["inf", "0.5", "1"], ["0.5", "inf", "0.5"], ["inf", "0.7", "inf"]],
        "choices": [3],
    },
    "grr under levels of pairs": {
        "notion": "metric-ldp", "epsilons": [["inf", "0.5", "1"], ["0.5", "inf", "0.5"], ["inf", "0.7", "inf"]],
        "choices": [3],
    },
    "polyopt": RLDP,
    "non-robust": {"notion": "secret-ldp", "epsilon": "0.5", "joint": TWO, "choices": [2, 2]},
    "grr": {**LIP, "joint": FOUR, "choices": [4]},
    "oue": {**LIP, "joint": FOUR, "choices": [4]},
    "symmetric-unary": {**LIP, "joint": FOUR, "choices": [4]},
    "subset-selection": {"notion": "ldp", "epsilon": "1", "choices": [5]},
    "warner": {"notion": "dpv", "dpv": "0.45", "joint": [[1013, 487]], "choices": [2]},
    "warner by its level": {"notion": "ldp", "epsilon": "1", "choices": [2]},
    "mangat": {"notion": "lip", "epsilon": "0.4", "joint": [[50, 10], [50, 40]], "choices": [2]},
    "super-binary-mangat": {"notion": "lip", "epsilon": "0.3", "joint": [[9, 6, 7], [9, 8, 7]], "choices": [3]},
    "product-sanitisation": {"notion": "dp", "epsilon": "0.75", "delta": "0.05", "choices": [4]},
    "discrete-exponential": {"notion": "srlip", "epsilon": "0.5", **PARTS, "joint": FOUR},
    "binary": {"notion": "dp", "epsilon": "0.5", "delta": "0.2", "joint": [[97, 30]], "choices": [2]},
    "binary at its parameters": {"notion": "ldp", "epsilon": "1", "p00": "0.7", "p11": "0.6", "choices": [2]},
    "conditional-reporting": {**LIP, "joint": FOUR, "choices": [2, 4], **SOME},
    "secret-rr": RLDP,
    "independent-reporting": {**RLDP, **SOME},
    "watchdog": {**ALIP, "epsilon_low": "0.75", "joint": FOUR, "choices": [4], **SOME},
    "subset-merging": {"notion": "lip", "epsilon": "0.25", "joint": FOUR, "choices": [4], **SOME},
    "subset-rr": {**ALIP, "epsilon_low": "0.5", "joint": FOUR, "choices": [4], **SOME},
    "watchdog for an average": {
        **ALIP, "epsilon_low": "0.75", "lift_measure": "chi2", "joint": FOUR, "choices": [4], **SOME,
    },
}  # fmt: skip


def file_of(name: str) -> bytes:
    """Return the survey file of a case."""
    case = dict(CASES[name])
    sizes, joint = case.pop("choices"), case.pop("joint", None)
    questions = [
        {"id": f"q{i}", "text": {"en": f"Question {i}?"},
         "choices": [{"id": f"c{k}", "label": {"en": f"Choice {k}"}} for k in range(size)]}
        for i, size in enumerate(sizes)
    ]  # fmt: skip
    if joint:
        named = (
            {"secret": "ill", "secrets": [f"s{i}" for i in range(len(joint))]}
            if len(joint) > 1
            else {}
        )
        case["prior"] = {"joint": joint, "source": "a table", **named}
    block = {"id": "b", "mechanism": name.partition(" ")[0], "questions": questions, **case}
    survey = {"name": slug(name), "title": {"en": name}, "languages": ["en"], "min_reports": PEOPLE, "budget": "4",
              "opens": "2026-05-01T00:00:00Z", "blocks": [block]}  # fmt: skip
    return yaml.safe_dump(survey).encode()


def slug(name: str) -> str:
    return name.replace(" ", "-")
