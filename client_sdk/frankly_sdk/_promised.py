# SPDX-License-Identifier: Apache-2.0
"""Sentences about the promises of one block alone and of the whole report.

A bound on odds is stated only for promises without δ. Under (ε, δ), the stated bound is
P(result | a) ≤ e^ε·P(result | b) + δ: odds may change by more than e^ε even for results that
together have a probability above δ.
"""

from collections.abc import Iterator
from fractions import Fraction

from frankly_protocol.audit import Claim, ReportLevel, SecretLevel, chance_up, is_endless, ln_up
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.mechanisms import AgreementMechanism

from frankly_sdk._figures import percent_up, times
from frankly_sdk.budget import Budget


def block_promises(block: Block, has_strata: bool) -> Iterator[str]:
    """Yield a block's own promises, and the bound that holds even if a published table is wrong."""
    if isinstance(block.mechanism, AgreementMechanism):
        yield (
            "From this alone, odds between any two ways of answering all of these questions change by at most "
            f"×{times(block.ratio)}, whatever else is known."
        )
        return
    for promise in block.promises:
        yield _block_promise(promise, has_strata)
    if not block.rests_on_prior:
        return
    # A ceiling above 2^24 hardly protects anything, so it is not shown as a promise.
    if is_endless(block.ceiling):
        has_delta = any(promise.claim.delta is not None for promise in block.promises)
        answer = "" if has_delta else " The answer itself is not protected."
        yield (
            "If that is not true, this alone may change odds by more than ×16 million: some symbols all but rule out "
            f"some answers.{answer}"
        )
    else:
        yield (
            f"Even if that is not true, this alone changes odds by at most ×{times(block.ceiling)}, which also "
            "protects the answer itself."
        )


def whole_report(document: SurveyDocument, level: ReportLevel) -> Iterator[str]:
    """Yield the bounds of the whole report: for each secret, then for the answers themselves."""
    subject = "From the whole report"
    if document.strata:
        subject = "Given your public answers, from everything else in the report"
        yield (
            "“Given your public answers” means: compared with what is believed about people who have the same public "
            "answers."
        )
    for name, secret in level.secrets.items():
        yield f"{subject}, {_secret(name, secret, level)}"
        if document.strata:
            yield _public_answers(name, secret)
    for promise, posterior in zip(_posterior_promises(document), level.posteriors, strict=True):
        # A bound of 1 says nothing, so there is no sentence about it.
        if promise.prior is not None and posterior.bound < 1:
            value = promise.prior.secrets[posterior.sensitive]
            sure = f"nobody can be surer than {percent_up(posterior.bound)} that your “{posterior.secret}” is “{value}”"
            yield f"{subject}, {sure}, {_IF_TRUE}."
    yield _answers(subject, level)


def cost(level: ReportLevel, budget: Budget | None) -> str:
    """Return a text with the ledger's charge, each block's part of it, and the remaining budget."""
    lines = ", ".join(
        f"{line.block} by its {_COUNTED[line.counted_by]}, {ln_up(line.odds)}"
        for line in level.lines
    )
    sentence = f"Answering everything costs {ln_up(level.cost.odds)} nats of what this app allows you in all ({lines})."
    if level.cost.odds is None:
        sentence = f"Answering uses up for good everything that this app allows you ({lines})."
    if level.cost.delta:
        sentence += (
            f" It also uses up {chance_up(level.cost.delta)} of the δ that the app allows; "
            f"if less than that is left, it costs {ln_up(level.ceiling)} nats."
        )
    return sentence if budget is None else f"{sentence} {budget}"


_COUNTED = {"ceiling": "ceiling", "dp": "(ε, δ) promise"}
_IF_TRUE = "as long as the published tables about it are true"


def _posterior_promises(document: SurveyDocument) -> list[Promise]:
    """Return the promises that `ReportLevel.posteriors` come from, in the same order."""
    promises = [promise for block in document.blocks for promise in block.promises]
    return [promise for promise in promises if promise.claim.notion == "dpv"]


def _block_promise(promise: Promise, has_strata: bool) -> str:
    claim = promise.claim
    level = Fraction(*claim.level) if claim.level else None
    if claim.levels is not None:
        return f"From this alone, {_between_pairs(claim)}, whatever else is known."
    if promise.secret is None and claim.delta is None:
        return (
            f"From this alone, odds between two answers to it change by at most ×{times(level)}, whatever "
            "else is known."
        )
    if promise.secret is None and claim.delta is not None:
        bound = _with_delta(times(level), "answer to it", Fraction(*claim.delta))
        return f"From this alone, {bound}, whatever else is known."
    alone, beside = "From this alone", ""
    if promise.is_stratified:
        alone = "From this alone, given your public answers"
    # The prior is that of all respondents; those who know the public answers have another prior.
    elif has_strata:
        alone = "From this alone, for readers who ignore your public answers"
        beside = " Against readers who know your public answers, this promise does not hold; only the other limits do."
    return f"{alone}, {_about(promise)}, as long as this published table is true: {promise.source}.{beside}"


def _between_pairs(claim: Claim) -> str:
    """Return a sentence part with the least and the largest level of a pair of answers."""
    pairs = [
        ratio for x, row in enumerate(claim.levels or ()) for z, ratio in enumerate(row) if x != z
    ]
    factor = Fraction(*(claim.level or (1, 1)))
    levels = sorted(factor * Fraction(*ratio) for ratio in pairs if ratio)
    least, most = times(levels[0]), times(levels[-1])
    between = f"×{most}" if least == most else f"×{least} to ×{most}, depending on the two"
    unlimited = len(pairs) - len(levels)
    beside = f" (no limit is promised for {unlimited} of {len(pairs)} pairs)" if unlimited else ""
    return f"odds of one answer to it against another grow by at most {between}{beside}"


def _about(promise: Promise) -> str:
    """Return a sentence part with the bound of a promise that rests on a prior."""
    claim, secret = promise.claim, promise.secret
    bound = times(Fraction(*claim.level)) if claim.level else "∞"
    if claim.notion == "dpv" and claim.level and promise.prior and claim.sensitive is not None:
        value = promise.prior.secrets[claim.sensitive]
        return f"nobody can be surer than {percent_up(Fraction(*claim.level))} that your “{secret}” is “{value}”"
    if claim.notion == "alip":
        low = times(Fraction(*claim.low_level)) if claim.low_level else "∞"
        sides = {
            "pml": f"grows by at most ×{bound}, but may shrink without limit",
            "pmc": f"shrinks by at most ÷{low}, but may grow without limit",
            "alip": f"grows by at most ×{bound} and shrinks by at most ÷{low}",
        }
        return f"belief about your “{secret}” {sides[claim.name]}"
    if claim.notion in ("lip", "srlip"):
        beside_answers = (
            ", even for those who know some of your answers to it"
            if claim.notion == "srlip"
            else ""
        )
        return f"belief about your “{secret}” changes by at most ×{bound}{beside_answers}"
    return f"odds about your “{secret}” change by at most ×{bound}"


def _secret(name: str, secret: SecretLevel, level: ReportLevel) -> str:
    if secret.odds is None or secret.level is None:
        return f"no limit is promised on what can be learnt about your “{name}”."
    # If the secret's bound is that of the answers themselves, it does not depend on a table.
    is_prior_free = (secret.level, secret.odds) == (level.answers.level, level.answers.odds)
    provided = "whatever else is known" if is_prior_free else _IF_TRUE
    counted = ""
    if secret.counted is not None and len(level.lines) > 1:
        counted = f" (for the odds, “{secret.counted}” is counted by its promise and every other block by its limit)"
    return f"{_bound_of(name, secret)}, {provided}{counted}."


def _bound_of(name: str, secret: SecretLevel) -> str:
    """Return a sentence part with the bound of a secret, in its own unit and in odds."""
    lift, odds = times(secret.level), times(secret.odds)
    if secret.delta:
        return _with_delta(
            odds,
            f"value of your “{name}”",
            secret.delta,
            lift if secret.unit == "lift" else None,
        )
    if secret.unit == "odds":
        return f"odds about your “{name}” change by at most ×{odds}"
    return (
        f"belief about your “{name}” changes by at most ×{lift}, and odds between two of its "
        f"values by at most ×{odds}"
    )


def _public_answers(name: str, secret: SecretLevel) -> str:
    if secret.strata_lift is None or secret.strata_odds is None:
        return f"What your public answers alone reveal about your “{name}” has no known limit."
    return (
        f"Your public answers alone can change belief about your “{name}” by up to ×{times(secret.strata_lift)} and "
        f"odds by up to ×{times(secret.strata_odds)}, {_IF_TRUE}."
    )


def _answers(subject: str, level: ReportLevel) -> str:
    if level.answers.odds is None:
        open_blocks = ", ".join(f"“{line.block}”" for line in level.lines if line.odds is None)
        return f"The answers themselves are not all protected: no limit holds for {open_blocks}."
    if level.answers.delta:
        return (
            f"{subject}, {_with_delta(times(level.answers.odds), 'set of answers', level.answers.delta)}, whatever "
            "else is known."
        )
    return (
        f"{subject}, odds about your answers themselves change by at most ×{times(level.answers.odds)}, "
        "whatever else is known."
    )


def _with_delta(odds: str, noun: str, delta: Fraction, lift: str | None = None) -> str:
    average = f" or more than ×{lift} as likely as on average" if lift else ""
    chance = f"plus a chance of at most {percent_up(delta)}"
    return f"no result is more than ×{odds} as likely with one {noun} as with another{average}, {chance}"
