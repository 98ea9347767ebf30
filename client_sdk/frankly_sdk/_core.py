# SPDX-License-Identifier: Apache-2.0
"""Core shared by the sync and async clients: each operation as steps that yield their waits."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from frankly_protocol.explanation.budget import Budget

from frankly_sdk._checks import each, key_fault, require, time_of
from frankly_sdk._opening import Opening
from frankly_sdk._sealing import Row, Sealing
from frankly_sdk._seams import Seams
from frankly_sdk._sender import Sender
from frankly_sdk._steps import Steps, Stop, run
from frankly_sdk._turns import Turns
from frankly_sdk.batch import Randomised, Respondent, randomise
from frankly_sdk.delivery import LEAST_S, Delivery
from frankly_sdk.errors import AlreadyAnswered, Disabled, UnknownChoice
from frankly_sdk.events import Event, OnEvent, announcer
from frankly_sdk.link import SurveyLink
from frankly_sdk.plan import Plan
from frankly_sdk.policy import Policy
from frankly_sdk.receipt import Receipt
from frankly_sdk.relay import RelayTransport
from frankly_sdk.shared_store import SharedStore
from frankly_sdk.store import Sealed, Store
from frankly_sdk.survey import Survey
from frankly_sdk.transport import HttpTransport, Transport, within

SPREAD_S: Final = 0.01
"""Default upper limit of the random send delay, in seconds: 10,000 times the largest timing
difference between two draws."""
DRAWN_SPREAD_S: Final = 30.0
"""The same for surveys that ask only what is drawn, where a report names the question that somebody
answered last: this hides how long they hesitated."""
PATIENCE_S: Final = 10.0
"""Default time to keep trying, in seconds; if only what is drawn is asked, after the random moment."""
OPENING_S: Final = 3.0
"""Longest wait of `open`, in seconds, for a server that does not take the reports of an earlier run;
with a background sender, which sends them later, it is `LEAST_S`."""
_DISABLED = "the app has switched this off: nothing was drawn, stored or sent"


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `Client.open`, which describes them."""

    link: str
    store: str | Path
    policy: Policy | None = None
    keys: bytes | None = None
    enabled: bool = True
    debug: bool = False
    on_event: OnEvent | None = None
    relay: str | None = None
    ca_file: str | Path | None = None
    spread_s: float | None = None
    background: bool = False
    one_person: bool = False
    patience_s: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidInput for an argument of the wrong type or out of range."""
        require(
            store=self.store,
            policy=self.policy,
            keys=self.keys,
            enabled=self.enabled,
            debug=self.debug,
            on_event=self.on_event,
            ca_file=self.ca_file,
            spread_s=self.spread_s,
            background=self.background,
            one_person=self.one_person,
            patience_s=self.patience_s,
        )


@dataclass(frozen=True, slots=True)
class Parts:
    """Components of an enabled client; `sender` is None without background delivery."""

    survey: Survey
    store: Store
    sealing: Sealing
    delivery: Delivery
    sender: Sender | None

    def deliver_later(self) -> None:
        """Wake the background sender, if there is one."""
        if self.sender is not None:
            self.sender.wake()


class Core:
    """One open client: its operations, independent of how a caller waits."""

    def __init__(
        self, link: SurveyLink, announce: OnEvent, seams: Seams, shared: SharedStore
    ) -> None:
        self.link, self.seams, self.shared = link, seams, shared
        self.parts: Parts | None = None
        self.stop = Stop()
        self._announce = announce
        # Receipts of the reports delivered while opening, by report id, for the first `flush`.
        self._early = dict[str, Receipt]()
        self._closing = ExitStack()

    @classmethod
    def open(cls, options: Options, seams: Seams) -> "Core":
        """Send the reports left by an earlier run, then fetch and verify the survey.

        Raises the errors of `Client.open`, after closing everything that it had opened.
        """
        link = SurveyLink.parse(options.link)
        announce = announcer(options.on_event, debug=options.debug)
        core = cls(link, announce, seams, SharedStore(options.one_person, announce, link.survey))
        if options.enabled:
            with core._closing:  # if a later step raises, everything opened so far is closed
                core.parts = core._open(options)
                core._closing = core._closing.pop_all()
        return core

    def _open(self, options: Options) -> Parts:
        policy, clock, link = options.policy or Policy(), self.seams.clock, self.link
        transport = self.seams.transport
        if transport is None:
            transport = http = HttpTransport(self.seams.timer, ca_file=options.ca_file)
            self._closing.callback(http.close)
        if options.relay is not None:
            transport = RelayTransport(transport, options.relay)
        # The time begins here, and the reports of an earlier run are sent within it too.
        opening = _within(transport, options.patience_s)
        path = Path(options.store)
        stored = Store(path)
        self._closing.callback(stored.close)
        delivery = Delivery(
            transport, stored, Turns.of(path), clock, self.seams.timer, self._announce, self.stop
        )
        self._send_early(replace(delivery, transport=opening), options)
        opened = Opening(
            link,
            stored,
            opening,
            time_of(clock),
            self._announce,
            policy.wants_log(link.digest),
            policy.collect_hosts,
        ).survey(options.keys)
        level = policy.level(opened.document)
        # (10); an answered survey has already been charged
        if stored.answer(opened.chain, link.survey) is None:
            policy.check(
                opened.document,
                level,
                pinned=opened.pinned,
                logged=opened.logged,
                spent=stored.spent(),
            )
        self._announce(Event("opened", link.survey))
        sealing = Sealing(
            opened.document,
            level,
            opened.chain,
            opened.pinned,
            opened.logged,
            policy,
            stored,
            clock,
            self.seams.randbits,
        )
        arms = {
            name: Survey(arm.document, opened.signed_by, arm.level)
            for name, arm in sealing.arms.items()
        }
        survey = Survey(opened.document, opened.signed_by, level, arms)
        default_s = DRAWN_SPREAD_S if sealing.planning.is_needed else SPREAD_S
        spread_s = default_s if options.spread_s is None else options.spread_s
        delivery = replace(delivery, spread_s=spread_s)
        sender = self._sender(delivery) if options.background else None
        return Parts(survey, stored, sealing, delivery, sender)

    def _send_early(self, delivery: Delivery, options: Options) -> None:
        """Send the reports of an earlier run once, and keep the receipts of those that are settled.

        Before the survey is opened, because that may fail and the reports may be another survey's.
        """
        least_s = LEAST_S if options.background else OPENING_S
        if options.patience_s is not None:
            # Half, so that a silent server of another survey leaves time to open this one.
            half_s = options.patience_s / 2
            least_s = min(least_s, half_s)
            delivery = replace(delivery, transport=within(delivery.transport, half_s))
        early = run(delivery.flush(timeout_s=0, least_s=least_s), self.sleep)
        self._early = {name: early[name] for name in early if early[name].status != "queued"}

    def _sender(self, delivery: Delivery) -> Sender:
        """Start the background sender; `close`, or the end of the process, stops it."""
        sender = Sender(delivery, self.seams)
        self._closing.callback(sender.stop)
        sender.start()
        return sender

    def sleep(self, seconds: float) -> None:
        """Wait between two steps, until `close` is called."""
        (self.seams.sleep or self.stop.wait)(seconds)

    @property
    def survey(self) -> Survey:
        """The accepted survey; raises Disabled if there is none."""
        if self.parts is None:
            raise Disabled
        return self.parts.survey

    def budget(self, respondent: str | None) -> Budget:
        """Return the survey's cost for a respondent, and the budget before and after it."""
        _require_key(respondent)
        if self.parts is None:
            raise Disabled
        store, survey, sealing = self.parts.store, self.parts.survey, self.parts.sealing
        name = store.respondent_name(respondent or "")
        return sealing.policy.budget(
            survey.document,
            survey.level,
            store.spent(name),
            is_answered=store.answer(sealing.chain, survey.document.survey, name) is not None,
        )

    def plan(self, respondent: str | None) -> Plan:
        """Return what to ask a respondent, drawn and stored durably by the first call."""
        _require_key(respondent)
        if self.parts is None:
            raise Disabled
        store, sealing = self.parts.store, self.parts.sealing
        name = store.respondent_name(respondent or "")
        plan = sealing.plan(name)
        if plan is None:
            raise AlreadyAnswered(_receipt(sealing.answered(name)))
        self._announce(Event("planned", self.link.survey))
        return plan

    def answer(self, row: Row, respondent: str | None, patience_s: float | None) -> Steps[Receipt]:
        """Randomise, seal and send one answer; the first step seals it."""
        require(patience_s=patience_s)
        _require_key(respondent)
        parts = self.parts
        if parts is None:
            self._announce(Event("disabled", self.link.survey))
            return Receipt("disabled", "disabled", _DISABLED)
        sealing, rule = parts.sealing, parts.survey.document.token
        if rule is not None and rule.question is not None and self.link.source is not None:
            row = replace(row, public=row.public.or_else(rule.question, self.link.source))
        if sealing.arms:
            (row,) = sealing.armed([self._named(row, parts, respondent)])
        settled = sealing.settled(row)
        if isinstance(settled, UnknownChoice):
            raise settled
        (fitting,) = sealing.planned([self._named(settled, parts, respondent)])
        if isinstance(fitting, UnknownChoice):
            raise fitting
        sealed, name = sealing.one(fitting), fitting.respondent
        # Nothing keeps the answers during the waits that follow.
        del row, settled, fitting
        if sealed is None:
            raise AlreadyAnswered((yield from self._deliver_again(parts, name, patience_s)))
        parts.delivery.schedule(sealed)
        self._announce(Event("sealed", sealed.survey))
        receipt = None
        try:
            receipt = yield from self._deliver(parts, sealed, patience_s)
        finally:
            # This also runs if a task is cancelled during a wait: the answer is sealed and has to
            # be sent.
            if receipt is None or receipt.status == "queued":
                parts.deliver_later()
        return receipt

    def _named(self, row: Row, parts: Parts, respondent: str | None) -> Row:
        """Return the row with its respondent's name in the store, and its token.

        Without arms it is called only after all checks of the answers, because it may write the
        store's salt.
        """
        token = row.token
        if token is None and parts.survey.document.token is not None:
            token = self.link.invite
        return replace(row, respondent=parts.store.respondent_name(respondent or ""), token=token)

    def _deliver_again(
        self, parts: Parts, respondent: str, patience_s: float | None
    ) -> Steps[Receipt]:
        # The bytes of the first report are sent again; no new symbols are drawn.
        sealed = parts.sealing.answered(respondent)
        if sealed is not None and sealed.state == "sealed":
            return (yield from self._deliver(parts, sealed, patience_s))
        return _receipt(sealed)

    def _deliver(self, parts: Parts, sealed: Sealed, patience_s: float | None) -> Steps[Receipt]:
        if patience_s is None:
            is_drawn = parts.sealing.planning.is_needed
            patience_s = PATIENCE_S + (parts.delivery.spread_left_s(sealed) if is_drawn else 0.0)
        return parts.delivery.deliver(sealed, patience_s)

    def randomise_many(self, rows: Iterable[Respondent]) -> Iterator[Randomised]:
        """Return an iterator that seals the rows, 500 in each transaction."""
        # Checked at the call, not at the first `next` of the returned iterator.
        source = each(rows)
        if self.parts is None:
            self._announce(Event("disabled", self.link.survey))
            return iter(())
        return self._randomise(self.parts, source)

    def _randomise(self, parts: Parts, source: Iterator[Respondent]) -> Iterator[Randomised]:
        try:
            yield from randomise(parts.sealing, source, self._announce)
        finally:
            parts.deliver_later()

    def flush(self, timeout_s: float) -> Steps[list[Receipt]]:
        """Send the reports that are still sealed in this store.

        The first call also returns the receipts of the reports delivered while opening.
        """
        require(timeout_s=timeout_s)
        if self.parts is None:
            return []
        receipts = yield from self.parts.delivery.flush(timeout_s)
        early, self._early = self._early, {}
        # A report that could not be erased while opening has been sent again; it counts once.
        return list((early | receipts).values())

    def close(self) -> None:
        """End all waits, stop the background sender, close the store and the connections."""
        self.stop.set()
        self._closing.close()


def _within(transport: Transport, seconds: float | None) -> Transport:
    return transport if seconds is None else within(transport, seconds)


def _receipt(sealed: Sealed | None) -> Receipt:
    """Return the state of a respondent's first answer."""
    if sealed is not None and sealed.state == "sealed":
        return Receipt("queued", "waiting", "the first answer is sealed here and will be sent")
    # There is no new draw after a final refusal, because a second draw would reveal more.
    if sealed is not None and sealed.state == "refused":
        return Receipt("refused", sealed.code, "the server refused the first answer permanently")
    code = sealed.code if sealed else "accepted"
    return Receipt("sent", code, "the server has stored the first answer")


def _require_key(respondent: str | None) -> None:
    wrong = None if respondent is None else key_fault(respondent)
    if wrong is not None:
        raise wrong
