# SPDX-License-Identifier: Apache-2.0
"""Sentences about the promises of one block alone and of the whole report.

A bound on odds is stated only for promises without δ. Under (ε, δ), the stated bound is
P(result | a) ≤ e^ε·P(result | b) + δ: odds may change by more than e^ε even for results that
together have a probability above δ.
"""

from collections.abc import Iterator
from fractions import Fraction

from frankly_protocol.audit import ReportLevel, SecretLevel, chance_up, is_endless, ln_up
from frankly_protocol.audit.bounds import times
from frankly_protocol.audit.declared import DECLARED
from frankly_protocol.blocks import Block, Promise
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.explanation.budget import Budget
from frankly_protocol.explanation.catalogue import Texts
from frankly_protocol.explanation.figures import percent_up


def block_promises(block: Block, has_strata: bool, texts: Texts) -> Iterator[str]:
    """Yield a block's own promises, and the bound that holds even if a published table is wrong."""
    say = texts.part("promises").say
    if block.form is not None:
        yield say("form", ratio=texts.figure(times(block.ratio)))
        return
    for promise in block.promises:
        yield _block_promise(promise, has_strata, texts)
    if not block.rests_on_prior:
        return
    # A ceiling above 2^24 offers hardly any protection, so it is not shown as a promise.
    if not is_endless(block.ceiling):
        yield say("ceiling", ratio=texts.figure(times(block.ceiling)))
    elif any(promise.claim.delta is not None for promise in block.promises):
        yield say("no_ceiling")
    else:
        yield say("no_ceiling_open")


def whole_report(document: SurveyDocument, level: ReportLevel, texts: Texts) -> Iterator[str]:
    """Yield the bounds of the whole report: for each secret, then for the answers themselves."""
    say, subject = texts.part("whole").say, "subject_given" if document.strata else "subject"
    if document.strata:
        yield say("given")
    for name, secret in level.secrets.items():
        yield say(subject, bound=_secret(name, secret, level, texts))
        if document.strata:
            yield _public_answers(name, secret, texts)
    for promise, posterior in zip(_posterior_promises(document), level.posteriors, strict=True):
        # A bound of 1 means that nothing is revealed, so no sentence is needed.
        if promise.prior is not None and posterior.bound < 1:
            chance = texts.figure(percent_up(posterior.bound))
            value = promise.prior.secrets[posterior.sensitive]
            sure = say("sure", chance=chance, secret=posterior.secret, value=value)
            yield say(subject, bound=say("if_true", bound=sure))
    yield _answers(subject, level, texts)


def cost(level: ReportLevel, budget: Budget | None, texts: Texts) -> str:
    """Return a text with the ledger's charge, each block's part of it, and the remaining budget."""
    say = texts.part("whole").say

    def nats(odds: Fraction | None) -> str:
        return texts.figure(ln_up(odds))

    blocks = ", ".join(
        say(f"by_{line.counted_by}", block=line.block, nats=nats(line.odds)) for line in level.lines
    )
    if level.cost.odds is None:
        sentences = [say("cost_all", blocks=blocks)]
    else:
        sentences = [say("cost", nats=nats(level.cost.odds), blocks=blocks)]
    if level.cost.delta:
        delta = texts.figure(chance_up(level.cost.delta))
        sentences.append(say("cost_delta", delta=delta, nats=nats(level.ceiling)))
    if budget is not None:
        sentences.append(budget.sentence(texts))
    return " ".join(sentences)


def _posterior_promises(document: SurveyDocument) -> list[Promise]:
    """Return the promises behind `ReportLevel.posteriors`, in the same order."""
    promises = [promise for block in document.blocks for promise in block.promises]
    return [promise for promise in promises if DECLARED[promise.claim.notion].is_posterior]


def _block_promise(promise: Promise, has_strata: bool, texts: Texts) -> str:
    say = texts.part("promises").say
    bound = _bound(promise, texts)
    if promise.secret is None:
        return say("alone", bound=bound)
    if promise.is_stratified:
        return say("by_table_within", bound=bound, source=promise.source)
    # The prior is for all respondents; anyone who knows the public answers has a different prior.
    return say("by_table_beside" if has_strata else "by_table", bound=bound, source=promise.source)


def _bound(promise: Promise, texts: Texts) -> str:
    """Return a sentence part with the bound of a promise, in the words of its notion."""
    claim, say = promise.claim, texts.part("promises").say
    said = DECLARED[claim.notion].said(claim)
    figures = {name: texts.figure(times(ratio)) for name, ratio in said.ratios.items()}
    if said.chance is not None:
        figures["chance"] = texts.figure(percent_up(said.chance))
    if promise.prior is not None and claim.sensitive is not None:
        figures["value"] = promise.prior.secrets[claim.sensitive]
    bound = ""
    for name in said.names:
        bound = say(name, bound=bound, secret=promise.secret, **figures, **said.numbers)
    return bound


def _secret(name: str, secret: SecretLevel, level: ReportLevel, texts: Texts) -> str:
    say = texts.part("whole").say
    if secret.odds is None or secret.level is None:
        return say("unlimited", secret=name)
    # If the secret's bound is that of the answers themselves, it does not depend on a table.
    is_prior_free = (secret.level, secret.odds) == (level.answers.level, level.answers.odds)
    bound = say("always" if is_prior_free else "if_true", bound=_bound_of(name, secret, texts))
    if secret.counted is None or len(level.lines) == 1:
        return bound
    return say("counted", bound=bound, block=secret.counted)


def _bound_of(name: str, secret: SecretLevel, texts: Texts) -> str:
    """Return a sentence part with the bound of a secret, in its own unit and in odds."""
    is_lift = secret.unit == "lift"
    key = "lift" if is_lift else "odds"
    if secret.delta:
        key = "delta_lift" if is_lift else "delta"
    return texts.part("whole").say(
        key,
        secret=name,
        lift=texts.figure(times(secret.level)),
        odds=texts.figure(times(secret.odds)),
        chance=texts.figure(percent_up(secret.delta)),
    )


def _public_answers(name: str, secret: SecretLevel, texts: Texts) -> str:
    say = texts.part("whole").say
    if secret.strata_lift is None or secret.strata_odds is None:
        return say("public_open", secret=name)
    lift, odds = (texts.figure(times(x)) for x in (secret.strata_lift, secret.strata_odds))
    return say("public", secret=name, lift=lift, odds=odds)


def _answers(subject: str, level: ReportLevel, texts: Texts) -> str:
    say, answers = texts.part("whole").say, level.answers
    if answers.odds is None:
        open_blocks = ", ".join(f"“{line.block}”" for line in level.lines if line.odds is None)
        return say("answers_open", blocks=open_blocks)
    chance = texts.figure(percent_up(answers.delta))
    key = "answers_delta" if answers.delta else "answers"
    bound = say(key, odds=texts.figure(times(answers.odds)), chance=chance)
    return say(subject, bound=say("always", bound=bound))
