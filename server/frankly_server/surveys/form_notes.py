# SPDX-License-Identifier: Apache-2.0
"""Sentences about a form for its admin, before and after publishing."""

from frankly_protocol.blocks import Block
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_server.joint_tables import estimable_pairs, excess_in_words, joint_tables_in_words


def form_notes(block: Block) -> tuple[str, ...]:
    """Return sentences about a form, none for other blocks."""
    form = block.mechanism
    if not isinstance(form, AgreementMechanism):
        return ()
    low, high = form.questions_drawn
    number = str(low) if low == high else f"{low} to {high}"
    has_boxes = any(question.box for question in block.questions)
    what = "questions and boxes" if has_boxes else "questions"
    notes = [f"Each report is about {number} of its {len(form.choices)} {what}, drawn at random."]
    if len(form.choices) > 1:
        names = [question.id for question in block.questions]
        notes.append(joint_tables_in_words(estimable_pairs(form), names))
    certificate = block.certificate
    if certificate is not None and certificate.bound is not None and float(certificate.bound) > 0:
        notes.append(excess_in_words(float(certificate.value), float(certificate.bound)))
    return tuple(notes)
