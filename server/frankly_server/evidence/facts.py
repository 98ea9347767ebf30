# SPDX-License-Identifier: Apache-2.0
"""Facts of a signed document and of the server's state: the only source of the folder's statements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

from frankly_protocol.audit import ReportLevel, chance_up, ln_up, report_level
from frankly_protocol.audit.bounds import times
from frankly_protocol.blocks import Block, Question
from frankly_protocol.clock import format_time
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.promises import Promise


@dataclass(frozen=True, slots=True)
class State:
    """State of the server, read in one go.

    made : time of reading, UTC, RFC 3339. name : the survey's name on this server. shown : open,
    paused, closed, archived or scheduled. versions : number of published versions. link : the link
    that respondents get, which pins the document. signers : ids of the publisher keys whose
    signatures were verified, of which `threshold` are needed. keys_version : of the keys document.
    witnesses : number of witnesses of the log, of which `witness_threshold` are needed; both None
    without a log. released : number of released reports of all versions; `releases` lists
    (number, time) of the releases of this version. people, api_keys : number of working accounts
    and API keys that open the survey, by role. webhook : True if one is set. estimates_view : True
    if estimates are also written to the database.
    """

    made: str
    name: str
    organisation: str
    shown: str
    versions: int
    link: str
    signers: Sequence[str]
    threshold: int
    keys_version: int
    witnesses: int | None
    witness_threshold: int | None
    released: int
    releases: Sequence[tuple[int, str]]
    people: Mapping[str, int]
    api_keys: Mapping[str, int]
    webhook: bool
    estimates_view: bool


@dataclass(frozen=True)
class Facts:
    """A verified document with the state of its server; texts are in `language`."""

    document: SurveyDocument
    state: State
    language: str

    @property
    def title(self) -> str:
        """The survey's title."""
        return self.document.title[self.language]

    @property
    def consent(self) -> str | None:
        """The document's own consent text."""
        return None if self.document.consent is None else self.document.consent[self.language]

    @property
    def server(self) -> str:
        """Address of the collecting server, from the signed document."""
        return self.document.collect_url.rpartition("/v1/surveys/")[0]

    @property
    def is_invited(self) -> bool:
        """True if reports carry an invitation, which links them to whom it was handed out.

        With sources, those of some may carry blind tokens instead; then is_mixed is True too.
        """
        return self.document.token is not None and bool(self.document.token.invites)

    @property
    def is_mixed(self) -> bool:
        """True if some sources have invitations and the others blind tokens."""
        return self.document.token is not None and self.document.token.is_mixed

    @property
    def is_witnessed(self) -> bool:
        """True if devices can rely on the log; without witnesses it can only be audited."""
        return bool(self.state.witness_threshold)

    @property
    def level(self) -> ReportLevel:
        """Level of the whole report without any δ."""
        return self.document.report_level

    @property
    def level_with_delta(self) -> ReportLevel | None:
        """Level of the whole report if the document's (ε, δ) promises count; None without any."""
        level = report_level(self.document, Fraction(1))
        return level if level.cost.delta else None

    @property
    def cells(self) -> int:
        """Number of combinations of public answers; 1 without public questions."""
        return prod(len(question.choices) for question in self.document.strata)

    @property
    def unchanged(self) -> str:
        """Ids of the blocks whose answers are sent unchanged; empty if there are none."""
        return ", ".join(
            block.id for block in self.document.blocks if block.mechanism.sends_unchanged
        )

    @property
    def ruling_out(self) -> str:
        """Ids of the other blocks of which some symbol rules out some answer; empty if none does."""
        return ", ".join(
            block.id
            for block in self.document.blocks
            if block.ceiling is None and not block.mechanism.sends_unchanged
        )

    @property
    def priors(self) -> Sequence[Promise]:
        """The promises that rest on a public table or on stated bounds."""
        return [
            promise
            for block in self.document.blocks
            for promise in block.promises
            if promise.secret is not None
        ]

    def text_of(self, question: Question) -> str:
        """Return the text of a question, with the label of a box."""
        if question.box is None:
            return question.text[self.language]
        return f"{question.box.text[self.language]} ({question.box.label[self.language]})"

    def choices_of(self, question: Question) -> str:
        """Return the labels of a question's choices."""
        return " / ".join(choice.label[self.language] for choice in question.choices)

    def moment(self, name: str) -> str:
        """Return a time of the document as text: issued, opens, closes or expires."""
        return format_time(getattr(self.document, name))


def bound_words(odds: Fraction | None) -> str:
    """Return a bound on odds as a factor and in nats, both rounded up."""
    return "no bound" if odds is None else f"×{times(odds)} ({ln_up(odds)} nats)"


def answers_words(facts: Facts) -> str:
    """Return a sentence on the level of the whole report about the answers themselves."""
    odds = facts.level.answers.odds
    given = "Given the public answers, from" if facts.document.strata else "From"
    if odds is None:
        open_blocks = ", ".join(line.block for line in facts.level.lines if line.odds is None)
        return (
            f"The answers themselves are not all protected: no bound holds for {open_blocks}, so "
            "there is no finite level of local differential privacy for the whole report."
        )
    return (
        f"{given} the whole report, odds about the answers themselves, or about anything else, "
        f"change by at most {bound_words(odds)}, whatever else is known."
    )


def exposed_words(facts: Facts) -> str:
    """Return sentences on answers that reports show in full or in part; empty if there are none."""
    sentences = []
    if facts.unchanged:
        sentences.append(f"Answers in these blocks are sent unchanged: {facts.unchanged}.")
    if facts.ruling_out:
        sentences.append(
            f"In these blocks some results rule out, or all but rule out, some answers: {facts.ruling_out}."
        )
    return " ".join(sentences)


def delta_words(facts: Facts) -> str | None:
    """Return a sentence on the level under the (ε, δ) promises; None without such promises."""
    level = facts.level_with_delta
    if level is None:
        return None
    odds = level.answers.odds
    delta = f"δ = {chance_up(level.cost.delta)}"
    given = "given the public answers, " if facts.document.strata else ""
    bound = (
        "there is still no finite bound for the whole report"
        if odds is None
        else f"{given}no set of reports is more than ×{times(odds)} (e to {ln_up(odds)}) as likely with one set "
        f"of answers as with another, plus {delta}"
    )
    return (
        f"In an app that accepts (ε, δ) promises with {delta}, {bound}. With a probability up to δ a "
        "report may reveal an answer. By default δ is 0, and such promises are not used."
    )


def promise_words(promise: Promise) -> str:
    """Return a promise's notion, its secret and its level; levels are rounded up."""
    claim = promise.claim
    about = "" if promise.secret is None else f" about “{promise.secret}”"
    if claim.sensitive is not None and claim.level is not None and promise.prior is not None:
        value = promise.prior.secrets[claim.sensitive]
        return f"{claim.name}{about}: P(“{value}” | report) at most {chance_up(Fraction(*claim.level))}"
    if claim.notion == "alip":
        up, down = (side and Fraction(*side) for side in (claim.level, claim.low_level))
        return f"{claim.name}{about}: belief up {bound_words(up)}, down {bound_words(down)}"
    if claim.levels is not None and claim.level is not None:
        ratios = [
            ratio for x, row in enumerate(claim.levels) for z, ratio in enumerate(row) if x != z
        ]
        most = max(Fraction(*claim.level) * Fraction(*ratio) for ratio in ratios if ratio)
        unlimited = sum(ratio is None for ratio in ratios)
        without = f", no level for {unlimited} of {len(ratios)} pairs" if unlimited else ""
        return f"{claim.name}: pairs of answers, at most {bound_words(most)}{without}"
    level = bound_words(Fraction(*claim.level) if claim.level else None)
    delta = "" if claim.delta is None else f", δ = {chance_up(Fraction(*claim.delta))}"
    return f"{claim.name}{about}: {level}{delta}"


def item_words(facts: Facts) -> str:
    """Return what is sent of an instructed item, followed by a space; "" without one."""
    item = facts.document.instructed
    if item is None:
        return ""
    return (
        f"Not protected: whether the item “{facts.text_of(item.question)}” was answered as it asks; "
        "which other choice was made is not sent. "
    )


def relation_words(promise: Promise, block: Block, *, has_strata: bool) -> str:
    """Return how a promise relates to local differential privacy (LDP)."""
    if promise.claim.notion == "ldp":
        return "This is LDP: it holds under every prior."
    ceiling = (
        "none, so this block gives no LDP."
        if block.ceiling is None
        else f"LDP of the block at {bound_words(block.ceiling)}."
    )
    if promise.secret is None:
        return f"Needs no prior. Ceiling: {ceiling}"
    rests = "bounds are" if promise.claim.lower_bounds is not None else "table is"
    # A public answer and a report together can reveal what neither reveals alone.
    condition = (
        "is void against readers who know the public answers"
        if has_strata and not promise.is_stratified
        else f"holds if the published {rests} true ({promise.source})"
    )
    return f"Not LDP: it {condition}. The ceiling holds under every prior: {ceiling}"


def posterior_words(facts: Facts) -> Sequence[str]:
    """Return a sentence for each bound of the whole report on a posterior (dpv)."""
    promises = [p for block in facts.document.blocks for p in block.promises]
    promises = [promise for promise in promises if promise.claim.sensitive is not None]
    return [
        f"After the whole report, the probability that “{bound.secret}” is "
        f"“{promise.prior.secrets[bound.sensitive]}” is at most {chance_up(bound.bound)}, if the "
        "published table is true."
        for promise, bound in zip(promises, facts.level.posteriors, strict=True)
        if promise.prior is not None and bound.bound < 1
    ]


def guess_words(facts: Facts, block: Block) -> str:
    """Return the chances of a guess from one report and of a blind guess, and what is guessed.

    Chances are rounded up.
    """
    form = block.form
    if form is not None:
        easiest = form.easiest
        guess, choices = form.guesses[easiest], form.choices[easiest]
        question = block.questions[easiest]
        about = f"the answer to “{facts.text_of(question)}” ({question.id}), the easiest to guess"
    else:
        mechanism = block.numbered_mechanism
        guess, choices = mechanism.guess, mechanism.answers
        about = "the answer" if len(block.questions) == 1 else "all answers of the block at once"
    return f"{about}: at most {chance_up(guess)} (blind: 1 in {choices})"
