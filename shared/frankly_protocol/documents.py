# SPDX-License-Identifier: Apache-2.0
"""`frankly.survey/2`: the document that a publisher signs and every device verifies (spec 3.3)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from frankly_protocol import canonical, schema
from frankly_protocol.arms import Arms
from frankly_protocol.audit import ReportLevel, largest_level, require_private
from frankly_protocol.audit.claims import require_sound
from frankly_protocol.audit.work import MAX_COUNTS, require_affordable
from frankly_protocol.blocks import Block
from frankly_protocol.clock import format_time
from frankly_protocol.envelope import SURVEY_TYPE, Envelope
from frankly_protocol.errors import ClockError, DocumentRejected, UnsupportedDocument
from frankly_protocol.questions import (
    RESULTS,
    Instructed,
    Languages,
    Question,
    Words,
    require_rules,
)
from frankly_protocol.report import MAX_TOKEN, Report
from frankly_protocol.tokens import TokenRule

TYPE = "frankly.survey/2"
MAX_VALIDITY = timedelta(days=400)
CLOCK_SKEW = timedelta(minutes=10)
RELEASE_EVERY = ("day", "hour")
_SHOWN = len("sha256:") + 12  # characters of the digest in a repr


@dataclass(frozen=True, repr=False)
class SurveyDocument:
    """One immutable version of a survey.

    survey : 128 random bits as hex.
    prev : digest of the previous version, or None for the first.
    issued, opens, closes, expires : aware UTC times.
    consent : text shown before answering, or None.
    min_reports : with fewer reports, analysts get no estimates.
    release_every : the period, in UTC, at whose end waiting reports may be released; one of
        `RELEASE_EVERY`.
    release_step : 2 to min_reports; fewer reports of one cell (this document and one answer to
        every public question) are never released on their own.
    strata : public questions, answered in the clear (often none).
    instructed : an item that asks for one given choice, or None; reports say whether it was made.
    token : the rule for the token that each report must carry, or None if no token is needed.
    arms : versions of the survey of which a device draws one, or None. arm, whole : of the view of an
        arm, its id and the document (`views`); otherwise None.

    One report carries a respondent's symbols for all blocks.
    """

    survey: str
    version: int
    prev: str | None
    issued: datetime
    opens: datetime
    closes: datetime
    expires: datetime
    languages: Languages
    title: Words
    consent: Words | None
    collect_url: str
    min_reports: int
    strata: tuple[Question, ...]
    blocks: tuple[Block, ...]
    token: TokenRule | None = None
    release_every: str = "day"
    release_step: int = 10
    instructed: Instructed | None = None
    arms: Arms | None = None
    arm: str | None = None
    whole: "SurveyDocument | None" = field(default=None, compare=False)

    def __repr__(self) -> str:
        arm = "" if self.arm is None else f", arm {self.arm}"
        size = len(self.questions)
        return (
            f"<SurveyDocument {self.survey}, version {self.version}{arm}: "
            f"{size} question{'s' * (size != 1)}, {self.digest[:_SHOWN]}…>"
        )

    def __post_init__(self) -> None:
        if not self.issued <= self.opens < self.closes <= self.expires:
            raise schema.reject("times must satisfy issued ≤ opens < closes ≤ expires", "expires")
        if self.expires > self.issued + MAX_VALIDITY:
            raise schema.reject(
                f"a document is valid for at most {MAX_VALIDITY.days} days", "expires"
            )
        if (self.prev is None) != (self.version == 1):
            raise schema.reject("the first version, and only the first, has no predecessor", "prev")
        if self.release_every not in RELEASE_EVERY:
            raise schema.reject(f"expected one of {', '.join(RELEASE_EVERY)}", "release_every")
        if not 2 <= self.release_step <= self.min_reports:
            raise schema.reject("expected 2 to min_reports", "release_step")
        schema.distinct(tuple(block.id for block in self.blocks), "blocks")
        if self.arms is None or self.arm is not None:
            self._require_answerable()
        else:
            self.arms.require_of([q.id for q in self.strata], [block.id for block in self.blocks])
            _ = self.views  # each is checked when it is made

    def _require_answerable(self) -> None:
        """Raise unless a device can ask all questions of this document, or view, in one answer."""
        # Answers are looked up by question id, so no two questions may share one, public or not.
        questions = [q.id for block in self.blocks for q in block.questions]
        questions += [q.id for q in self._asked_in_the_clear]
        questions += [] if self.arms is None else [self.arms.id]
        schema.distinct(tuple(questions), "blocks")
        require_rules(self.questions.values())
        self._require_tables()
        if self.instructed is not None:
            self._require_beside_item()
        if self.token is not None and self.token.question is not None:
            self._require_sources(self.token)

    @classmethod
    @lru_cache(maxsize=32)
    def from_envelope(cls, envelope: bytes) -> "SurveyDocument":
        """Read the document in the bytes of a DSSE envelope; its signatures are not checked.

        Results are cached: the same bytes give the same object, so a page or job parses a document
        only once. Raises DocumentRejected as `parse` and `Envelope.from_bytes` do.
        """
        return cls.parse(Envelope.from_bytes(envelope, SURVEY_TYPE).payload)

    @classmethod
    def parse(cls, payload: bytes) -> "SurveyDocument":
        """Read exact payload bytes (acceptance steps 1, 4, 5).

        Raises DocumentRejected with reason size, canonical, schema, type, weights, privacy (a wrong
        ceiling) or work_limit.
        """
        data = canonical.loads(payload)
        kind = data.get("type") if isinstance(data, dict) else None
        # Checked before the fields, so that an old app reports a new format as unsupported, not
        # its fields as unknown.
        if kind != TYPE:
            raise UnsupportedDocument(f"expected a document of type {TYPE}: update the app", "type")
        schema.DOCUMENT.record(data, None, _KEYS, {"instructed", "arms"})
        languages = schema.items(data["languages"], "languages", 1, 32, schema.language)
        schema.distinct(languages, "languages")
        times = {
            name: schema.moment(data[name], name)
            for name in ("issued", "opens", "closes", "expires")
        }
        document = cls(
            survey=schema.hex128(data["survey"], "survey"),
            version=schema.integer(data["version"], "version", 1),
            prev=schema.optional(data["prev"], "prev", schema.digest),
            issued=times["issued"],
            opens=times["opens"],
            closes=times["closes"],
            expires=times["expires"],
            languages=languages,
            title=schema.words(data["title"], "title", languages),
            consent=schema.optional(
                data["consent"], "consent", lambda v, f: schema.words(v, f, languages)
            ),
            collect_url=schema.text(data["collect_url"], "collect_url", 2000),
            min_reports=schema.integer(data["min_reports"], "min_reports", 2),
            release_every=schema.text(data["release_every"], "release_every"),
            release_step=schema.integer(data["release_step"], "release_step", 2),
            strata=schema.items(
                data["strata"],
                "strata",
                0,
                8,
                lambda v, f: Question.public_from_json(v, f, languages),
            ),
            blocks=schema.items(data["blocks"], "blocks", 1, 100, _block_reader(languages)),
            instructed=Instructed.from_json(data["instructed"], "instructed", languages)
            if "instructed" in data
            else None,
            arms=Arms.from_json(data["arms"], "arms") if "arms" in data else None,
            token=schema.optional(data["token"], "token", TokenRule.from_json),
        )
        # Fills the cached property: the digest of the received bytes, without a second encoding.
        document.__dict__["digest"] = canonical.digest(payload)
        return document

    def payload(self) -> bytes:
        """Return the canonical bytes to sign; `parse` returns an equal document.

        Those of a view are those of the whole document.
        """
        if self.whole is not None:
            return self.whole.payload()
        item = {} if self.instructed is None else {"instructed": self.instructed.to_json()}
        arms = {} if self.arms is None else {"arms": self.arms.to_json()}
        return canonical.dumps(
            item
            | arms
            | {
                "type": TYPE,
                "survey": self.survey,
                "version": self.version,
                "prev": self.prev,
                "issued": format_time(self.issued),
                "opens": format_time(self.opens),
                "closes": format_time(self.closes),
                "expires": format_time(self.expires),
                "languages": list(self.languages),
                "title": dict(self.title),
                "consent": None if self.consent is None else dict(self.consent),
                "collect_url": self.collect_url,
                "min_reports": self.min_reports,
                "release_every": self.release_every,
                "release_step": self.release_step,
                "strata": [q.to_json() for q in self.strata],
                "token": self.token.to_json() if self.token else None,
                "blocks": [block.to_json() for block in self.blocks],
            }
        )

    @cached_property
    def digest(self) -> str:
        """The document's identifier: ``sha256:…`` of its canonical bytes."""
        return canonical.digest(self.payload())

    @cached_property
    def key(self) -> str:
        """A name of this document, or of this view, for caches."""
        return self.digest if self.arm is None else f"{self.digest} {self.arm}"

    @cached_property
    def views(self) -> "Mapping[str, SurveyDocument]":
        """The view of each arm, by its id: the document with what the arm asks; else empty."""
        if self.arms is None or self.arm is not None:
            return {}
        blocks = {block.id: block for block in self.blocks}
        return {
            arm.id: replace(
                self,
                strata=tuple(q for q in self.strata if q.id in arm.strata),
                blocks=tuple(blocks[name] for name in arm.blocks),
                arm=arm.id,
                whole=self,
            )
            for arm in self.arms.arms
        }

    @property
    def versions(self) -> "tuple[SurveyDocument, ...]":
        """What a device may ask: the views of the arms, or the document itself if it has none."""
        return tuple(self.views.values()) or (self,)

    def version_of(self, strata: Mapping[str, str]) -> "SurveyDocument | None":
        """Return the view of the arm that a report names among its public answers.

        Without arms the document itself; None if the report names no arm of the document.
        """
        return self.views.get(strata.get(self.arms.id, "")) if self.arms and self.views else self

    @cached_property
    def report_level(self) -> ReportLevel:
        """The level of the whole report, for an app that allows no δ; of arms, the largest."""
        return largest_level(self.versions)

    @cached_property
    def report_length(self) -> int:
        """The length in bytes to which every report on this document is padded, in any arm."""
        if self.whole is not None:
            return self.whole.report_length
        return max(map(_length_of, self.versions))

    @property
    def questions(self) -> Mapping[str, Question]:
        """The questions whose answers are randomised, by id, in the document's order.

        Of a document with arms, the last one of each id; those of an arm are its view's.
        """
        return {q.id: q for block in self.blocks for q in block.questions}

    @property
    def open_questions(self) -> Mapping[str, Question]:
        """The questions asked in the clear, by id: the public questions and the instructed item."""
        return {q.id: q for q in self._asked_in_the_clear}

    @property
    def _asked_in_the_clear(self) -> tuple[Question, ...]:
        return (*self.strata, *(() if self.instructed is None else (self.instructed.question,)))

    @property
    def open_values(self) -> Mapping[str, tuple[str, ...]]:
        """What a report can contain of each of the `open_questions`: choices, or results of the item.

        With arms, also which arm was drawn.
        """
        item = {} if self.instructed is None else {self.instructed.id: RESULTS}
        arms = self.arms
        arm = {} if arms is None else {arms.id: arms.ids if self.arm is None else (self.arm,)}
        return {q.id: tuple(choice.id for choice in q.choices) for q in self.strata} | item | arm

    def open_answers(self, choices: Mapping[str, str]) -> dict[str, str]:
        """Return what a report contains of the choices made at all `open_questions`, and the arm."""
        item = self.instructed
        arm = {} if self.arms is None or self.arm is None else {self.arms.id: self.arm}
        return {
            name: item.result(choice) if item is not None and name == item.id else choice
            for name, choice in choices.items()
        } | arm

    def require_window(self, now: datetime) -> None:
        """Raise ClockError unless the survey is open at `now`, give or take 10 minutes (step 6)."""
        # The skew allows for devices whose clocks are slightly wrong.
        if not self.opens - CLOCK_SKEW <= now <= min(self.closes, self.expires) + CLOCK_SKEW:
            raise ClockError(
                f"the survey is open from {format_time(self.opens)} to {format_time(self.closes)}, "
                f"this device's clock says {format_time(now)}",
                "opens" if now < self.opens else "closes",
            )

    def _require_tables(self) -> None:
        """Raise unless every prior has one table, or one for each stratum.

        Of those for each stratum there is one set, so all arms of the block have the same strata.
        """
        strata = prod(len(question.choices) for question in self.strata)
        places = {block.id: i for i, block in enumerate((self.whole or self).blocks)}
        for block in self.blocks:
            i = places[block.id]
            for c, promise in enumerate(block.promises):
                tables = 1 if promise.prior is None else len(promise.prior.tables)
                if tables not in (1, strata) or (tables > 1 and not self._is_like_earlier(block)):
                    raise schema.reject(
                        f"expected one table, or one for each of the {strata} strata of all its arms",
                        f"blocks[{i}].claims[{c}].prior.tables",
                    )

    def _is_like_earlier(self, block: Block) -> bool:
        """Return True if the first arm that has a block has the same public questions as this one."""
        if self.whole is None or self.arms is None:
            return True
        first = next(arm for arm in self.arms.arms if block.id in arm.blocks)
        return set(first.strata) == {question.id for question in self.strata}

    def _require_beside_item(self) -> None:
        """Raise if the document has a promise on a prior or an anchor, beside its instructed item."""
        # Who passes and who fails may differ in any way, so the published counts of all people say
        # nothing about either group, and the bit would void the promise.
        if any(block.rests_on_prior for block in self.blocks):
            raise schema.reject(
                "with an instructed item no promise may rest on a prior: who passes and who fails "
                "would need a prior of their own",
                "instructed",
            )
        # Two sources for one share of random answers could contradict each other.
        if any(question.anchor for question in self.questions.values()):
            raise schema.reject(
                "an instructed item and an anchor both tell who answers at random: keep one",
                "instructed",
            )

    def _require_sources(self, token: TokenRule) -> None:
        """Raise unless the sources are the choices of a public question, of every arm."""
        question = next((q for q in self.strata if q.id == token.question), None)
        if question is None:
            raise schema.reject("the sources are no public question's choices", "token.question")
        if token.rules.keys() != {choice.id for choice in question.choices}:
            raise schema.reject("expected a rule for each choice of the question", "token.rules")

    def require_private(self) -> None:
        """Verify every promise of every block exactly (step 9).

        Raises DocumentRejected with reason privacy or work_limit. If the promises together would
        take too long to verify, they are refused before verification starts.
        """
        # First, because the exact check could keep a device busy for a long time.
        require_affordable(self.blocks)
        promises = [
            (f"blocks[{i}].claims[{c}]", block.mechanism, promise)
            for i, block in enumerate(self.blocks)
            for c, promise in enumerate(block.promises)
        ]
        for place, mechanism, promise in promises:
            with _named(place):
                require_sound(promise.claim, mechanism.answers)
        for place, mechanism, promise in promises:
            with _named(place):
                for claim in promise.claims:
                    require_private(mechanism, claim)


def _length_of(version: SurveyDocument) -> int:
    """Return the number of bytes of the longest report, without padding."""
    values = {name: max(ids, key=len) for name, ids in version.open_values.items()}
    token = "0" * MAX_TOKEN if version.token else None
    symbols = tuple(block.mechanism.longest_symbol_json() for block in version.blocks)
    # The longest choice ids, token and symbols, so that every report fits.
    return len(Report(version.digest, "0" * 32, symbols, values, token).to_bytes(0))


def _block_reader(languages: Languages) -> Callable[[Any, str], Block]:
    """Return a reader of blocks that limits the counts in the priors of all blocks together.

    A prior of one row is written out to one row per answer, so a document of 4 MiB could need
    memory for several hundred million counts.
    """
    counts = 0

    # Counted while reading: after the last block, the memory would already be full.
    def read(value: Any, field: str) -> Block:
        nonlocal counts
        block = Block.from_json(value, field, languages)
        counts += sum(promise.prior.size for promise in block.promises if promise.prior)
        counts += 0 if block.form is None else block.form.cells
        if counts > MAX_COUNTS:
            raise DocumentRejected(
                "work_limit",
                f"priors and forms have more than {MAX_COUNTS} counts, with all tables written out",
                field,
            )
        return block

    return read


@contextmanager
def _named(promise: str) -> Iterator[None]:
    """Prefix the field of a DocumentRejected with the path of a block's claim."""
    try:
        yield
    except DocumentRejected as error:
        error.field = f"{promise}.{error.field}".replace(".prior.joint[", ".prior.tables[0][")
        raise


_KEYS = frozenset(
    "type survey version prev issued opens closes expires languages title consent collect_url min_reports "
    "release_every release_step strata token blocks".split()
)
