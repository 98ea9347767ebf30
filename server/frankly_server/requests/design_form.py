# SPDX-License-Identifier: Apache-2.0
"""Requests of `frankly design --json` with a form: many questions under one level (spec 1.10)."""

from typing import Any

from frankly_server.design.form import FormDesign, FormRequest, design_form
from frankly_server.design.form.comparisons import one_question, separate_blocks
from frankly_server.design.tables.limits import Limits
from frankly_server.forms import chance_shown
from frankly_server.joint_tables import estimable_pairs, excess_in_words, joint_tables_in_words
from frankly_server.requests.form_fields import FormFields
from frankly_server.requests.measure import finite


def design_form_json(form: FormFields, limits: Limits) -> dict[str, Any]:
    """Design a form from a JSON request: {"form": …}, and optionally limits.

    Keys of `form`: questions, each with choices (their number, or expected counts), wanted (shares,
    mean, distribution, contrast), scores or contrast, and importance; epsilon, nats for all answers
    together; cross_tables, pairs of positions.
    Keys of the response: kind, bits, params, level [p, q]; value and bound of the objective at
    n = 1, and excess, an upper bound on value/optimum − 1; questions and cross_tables, each with
    its variance at n = 1 and the share of reports that show it; joint_tables, the pairs that can
    be estimated; separate_blocks and one_question, the value of the same questions without a form;
    notes, sentences.

    Raises InvalidInput, naming the field.
    """
    request = form.request(form.epsilon, limits)
    designed = design_form(request)
    mechanism, pairs = designed.mechanism, estimable_pairs(designed.mechanism)
    blocks, one = separate_blocks(request), one_question(request)
    has_bound = designed.bound > 0
    body = {
        "kind": mechanism.kind,
        "bits": mechanism.bits,
        "params": mechanism.params_json(),
        "level": [mechanism.agree, mechanism.disagree],
        "value": designed.value,
        "bound": designed.bound if has_bound else None,
        "excess": designed.excess if has_bound else None,
        "questions": [
            finite({"variance": variance, "shown": shown_share(designed, (i,))})
            for i, variance in enumerate(designed.variances)
        ],
        "cross_tables": [
            {"questions": list(pair)}
            | finite({"variance": variance, "shown": shown_share(designed, pair)})
            for pair, variance in zip(request.cross_tables, designed.pair_variances, strict=True)
        ],
        "joint_tables": [list(pair) for pair in pairs],
        "separate_blocks": {"value": blocks.value, "levels": list(blocks.levels)},
        "one_question": {"value": one.value, "chances": list(one.chances)},
        "notes": _notes(designed, request, pairs),
    }
    return finite(body)


def shown_share(designed: FormDesign, questions: tuple[int, ...]) -> float:
    """Return the share of reports that estimates about these questions use."""
    return float(chance_shown(designed.mechanism, parts_about(designed, questions)))


def parts_about(designed: FormDesign, questions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parts from which questions are estimated; `analysis` selects the same parts.

    The result is the smallest part with all questions or, if there is none, the smallest part for
    each question.
    """
    parts = designed.mechanism.parts
    by_size = sorted(range(len(parts)), key=lambda part: len(parts[part]))
    for part in by_size:
        if set(questions) <= set(parts[part]):
            return (part,)
    return tuple(
        next(part for part in by_size if question in parts[part]) for question in questions
    )


def _notes(designed: FormDesign, request: FormRequest, pairs: list[tuple[int, int]]) -> list[str]:
    names = [str(i) for i in range(len(request.questions))]
    notes = [joint_tables_in_words(pairs, names)] if len(names) > 1 else []
    if designed.bound > 0:
        notes.append(excess_in_words(designed.value, designed.bound))
    # The comparisons are computed last, so a time limit affects them first.
    if request.limits.out_of_time():
        notes.append("The time ran out: a longer search may lower every one of these values.")
    return notes
