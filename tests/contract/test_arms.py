# SPDX-License-Identifier: Apache-2.0
"""A split ballot through the whole path: file, devices, server, API and pages give the same numbers as
a computation from the reports alone. One arm asks in the clear, two protect the answer."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from random import Random
from typing import Any

import pytest
from frankly_analyst import Counts, models
from frankly_protocol.clock import FixedClock
from frankly_protocol.documents import SurveyDocument
from frankly_protocol.errors import InvalidInput
from frankly_protocol.report import Report
from frankly_sdk import Policy
from frankly_sdk.testing import open_client
from frankly_server.accounts import Passwords
from frankly_server.app import create_app
from frankly_server.services import Services
from frankly_server.settings import Settings
from frankly_server.store.reports import reports
from frankly_server.surveys.definition import parse_definition
from pydantic import SecretStr
from scipy.stats import binomtest
from sqlalchemy import select

from tests.contract.conftest import NOW, ORIGIN, InProcess
from tests.frankly_server.accounts.people import CHEAP
from tests.migrated import opened

PEOPLE = 400
YES_NO = '[{id: "no", label: {en: "No"}}, {id: "yes", label: {en: "Yes"}}]'


def block(name: str, question: str, epsilon: str, text: str) -> str:
    return (
        f'  - id: {name}\n    notion: ldp\n    epsilon: "{epsilon}"\n    mechanism: grr\n    questions:\n'
        f'    - {{id: {question}, text: {{en: "{text}"}}, choices: {YES_NO}}}\n'
    )


FILE = (
    "name: split\ntitle: {en: Split}\nlanguages: [en]\nopens: 2026-05-01T00:00:00Z\n"
    "closes: 2026-07-01T00:00:00Z\nexpires: 2026-08-01T00:00:00Z\nmin_reports: 20\nrelease_step: 2\n"
    'budget: "6"\nstrata:\n'
    '- {id: region, text: {en: "Where?"}, choices: [{id: n, label: {en: N}}, {id: s, label: {en: S}}]}\n'
    f'- {{id: paid, text: {{en: "Paid cash?"}}, choices: {YES_NO}}}\n'
    "blocks:\n"
    + block("cars", "car", "2", "Do you have a car?")
    + block("weak", "paid", "4", "Did you pay anybody in cash?")
    + block("strong", "paid", "2", "Did you pay in cash?")
    + "arms:\n- {id: clear, share: 1, strata: [paid]}\n- {id: weak, share: 1, blocks: [weak]}\n"
    "- {id: strong, share: 2, blocks: [strong]}\n"
).encode()


@dataclass
class Ballot:
    """A published survey with answers: its parts, and the stored rows."""

    http: Any
    services: Services
    survey: str
    document: SurveyDocument
    sent: Sequence[Report]
    rows: Sequence[tuple[list[int], dict[str, str]]]
    key: str

    def estimates(self, **query: Any) -> Any:
        answer = self.get("estimates", **query)
        assert answer.status_code == 200, answer.text
        return answer.get_json()

    def counts(self, **query: Any) -> Counts:
        answer = self.get("counts", **query)
        assert answer.status_code == 200, answer.text
        return Counts.from_json(answer.get_json())

    def get(self, what: str, **query: Any) -> Any:
        path = f"/v1/surveys/{self.survey}/{what}"
        return self.http.get(
            path, headers={"Authorization": f"Bearer {self.key}"}, query_string=query
        )


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ballot]:
    folder = tmp_path_factory.mktemp("arms")
    url = SecretStr(f"sqlite:///{folder / 'frankly.db'}")
    settings = Settings(home=folder / "home", database_url=url, public_url=ORIGIN)
    with closing(opened(settings, FixedClock(NOW), Passwords(CHEAP))) as services:
        services.surveys.apply(parse_definition(FILE))
        published = services.surveys.publish("split")
        app = create_app(settings, services=services)
        http = app.test_client()
        sent = answered(published.link, folder, http)
        document = SurveyDocument.from_envelope(services.surveys.envelope(published.survey_id))
        assert services.releasing.release() == PEOPLE
        with services.database.engine.connect() as connection:
            found = connection.execute(select(reports.c.symbols, reports.c.strata))
            rows = [(json.loads(f"[{row.symbols}]"), json.loads(row.strata)) for row in found]
        key = services.access.create("analyst", "test")
        yield Ballot(http, services, published.survey_id, document, sent, rows, key)


def answered(link: str, folder: Path, http: Any) -> list[Report]:
    rng, rows = Random(11), []
    for i in range(PEOPLE):
        paid, region = rng.random() < 0.3, rng.choice("ns")
        truth = {"paid": "yes" if paid else "no", "car": rng.choice(["yes", "no"])}
        rows.append((f"p{i}", truth, {"region": region, "paid": truth["paid"]}))
    transport = InProcess(http)
    options: Any = {"policy": Policy(cap="6"), "transport": transport, "clock": FixedClock(NOW)}
    with open_client(link, folder / "device.db", spread_s=0, **options) as client:
        results = list(client.randomise_many(rows))
        assert {row.status for row in results} == {"sealed"}
        receipts = Counter((one.status, one.code) for one in client.flush())
        assert receipts == {("sent", "accepted"): PEOPLE}
        return [Report.from_bytes(row.report or b"") for row in results]


def share(counted: Sequence[int], keep: float, flip: float) -> tuple[float, float]:
    """Return the unbiased share of yes and its variance."""
    n, observed = len(counted), sum(counted) / len(counted)
    return (observed - flip) / (keep - flip), observed * (1 - observed) / n / (keep - flip) ** 2


def in_arm(path: Ballot, arm: str) -> tuple[float, float, int]:
    """Return the share of `paid` in an arm, its variance and the number of reports, from those sent."""
    of_arm = [one for one in path.sent if one.strata["arm"] == arm]
    if arm == "clear":
        symbols = [int(one.strata["paid"] == "yes") for one in of_arm]
        return *share(symbols, 1.0, 0.0), len(of_arm)
    view = path.document.views[arm]
    place = next(i for i, one in enumerate(view.blocks) if one.id == arm)
    mechanism: Any = view.blocks[place].mechanism
    (_, flip), (_, keep) = mechanism.weights
    D = mechanism.denominator
    return *share([int(one.symbols[place]) for one in of_arm], keep / D, flip / D), len(of_arm)  # type: ignore[arg-type]


def test_devices_draw_the_arms_with_their_shares(path: Ballot) -> None:
    arms = path.document.arms
    assert arms is not None
    assert {arm.id: arm.chance for arm in arms.arms} == {
        "clear": 16384,
        "weak": 16384,
        "strong": 32768,
    }
    counted = Counter(one.strata["arm"] for one in path.sent)
    for arm in arms.arms:
        assert binomtest(counted[arm.id], PEOPLE, arm.chance / 65536).pvalue > 1e-6
    blocks = {name: [one.id for one in view.blocks] for name, view in path.document.views.items()}
    assert blocks == {"clear": ["cars"], "weak": ["cars", "weak"], "strong": ["cars", "strong"]}


def test_a_clear_answer_divides_no_cell(path: Ballot) -> None:
    """It is stored like a symbol: cells of a rare answer would be withheld, and its share biased."""
    assert {tuple(sorted(strata)) for _, strata in path.rows} == {("arm", "region")}
    counted = Counter((strata["arm"], len(symbols)) for symbols, strata in path.rows)
    assert set(counted) == {("clear", 2), ("weak", 2), ("strong", 2)}
    clear = Counter(symbols[1] for symbols, strata in path.rows if strata["arm"] == "clear")
    sent = Counter(one.strata["paid"] for one in path.sent if one.strata["arm"] == "clear")
    assert clear == {0: sent["no"], 1: sent["yes"]}


def test_estimates_by_arm_are_those_of_its_reports(path: Ballot) -> None:
    body = path.estimates(by="arm")
    found = {
        question["by"]["arm"]: question
        for question in body["questions"]
        if question["id"] == "paid"
    }
    assert list(found) == ["clear", "weak", "strong"]
    for arm, question in found.items():
        value, variance, n = in_arm(path, arm)
        row = question["rows"][1]
        assert question["n"] == n
        assert row["choice"] == "yes"
        assert row["estimate"] == pytest.approx(value, abs=1e-12)
        assert row["se"] ** 2 == pytest.approx(variance * n / (n - 1), rel=1e-6)
    texts = {arm: question["text"]["en"] for arm, question in found.items()}
    assert texts == {
        "clear": "Paid cash?",
        "weak": "Did you pay anybody in cash?",
        "strong": "Did you pay in cash?",
    }
    cars = [question for question in body["questions"] if question["id"] == "car"]
    assert [question["by"]["arm"] for question in cars] == ["clear", "weak", "strong"]
    assert {one["arm"]: one["n"] for one in body["documents"]} == Counter(
        one.strata["arm"] for one in path.sent
    )
    assert body["n"] == PEOPLE


def test_all_arms_together_are_their_mean_by_reports(path: Ballot) -> None:
    (paid,) = [q for q in path.estimates()["questions"] if q["id"] == "paid"]
    parts = [in_arm(path, arm) for arm in path.document.views]
    mean = sum(value * n for value, _, n in parts) / PEOPLE
    assert paid["n"] == PEOPLE
    assert paid["rows"][1]["estimate"] == pytest.approx(mean, abs=1e-12)
    assert "pooled" in paid["rows"][1]["flags"] + paid.get("flags", [])


def test_differences_between_arms_have_margins(path: Ballot) -> None:
    body = path.estimates(by="arm", compare="clear")
    (paid,) = [one for one in body["comparisons"] if one["question"] == "paid"]
    rows = {row["by"]: row for row in paid["rows"] if row["choice"] == "yes"}
    first, first_variance, n_first = in_arm(path, "clear")
    for arm in ("weak", "strong"):
        value, variance, n = in_arm(path, arm)
        row = rows[arm] if arm in rows else rows[f"arm={arm}"]
        assert row["difference"] == pytest.approx(value - first, abs=1e-12)
        expected = sqrt(variance * n / (n - 1) + first_variance * n_first / (n_first - 1))
        assert row["se"] == pytest.approx(expected, rel=1e-6)
        assert row["low"] < row["difference"] < row["high"]


def test_a_clear_question_can_be_in_a_joint_table(path: Ballot) -> None:
    (table,) = path.estimates(targets='["car","paid"]', by="arm")["questions"][:1]
    assert table["status"] == "ok"
    of_arm = [one for one in path.sent if one.strata["arm"] == "clear"]
    paid = sum(one.strata["paid"] == "yes" for one in of_arm) / len(of_arm)
    cells = {row["choice"]: row["estimate"] for row in table["rows"]}
    found = sum(value for name, value in cells.items() if name.endswith("yes"))
    assert table["by"] == {"arm": "clear"}
    assert found == pytest.approx(paid, abs=1e-9)


def test_public_answers_still_divide_all_arms(path: Ballot) -> None:
    body = path.estimates(by="region")
    paid = {q["by"]["region"]: q for q in body["questions"] if q["id"] == "paid"}
    for region, question in paid.items():
        assert question["n"] == sum(one.strata["region"] == region for one in path.sent)


@pytest.mark.parametrize("query", [{}, {"questions": "paid"}])
def test_counts_have_every_arm_that_asks(path: Ballot, query: dict[str, Any]) -> None:
    counts = path.counts(**query)
    parts = counts.of("paid")
    assert [part.arm for part in parts] == ["clear", "weak", "strong"]
    for part in parts:
        value, _, n = in_arm(path, str(part.arm))
        assert (part.n, part.withheld_reports, part.without_stratum) == (n, 0, 0)
        assert part.shares(part.stratum())[1] == pytest.approx(value, abs=1e-12)
        assert counts.part("paid", arm=part.arm) == part
    made = models.weighted_shares(counts, "paid")
    assert sum(part.n for part in parts) == PEOPLE
    assert models.fit("paid ~ 1", counts, success="yes").n == PEOPLE
    assert [row.name for row in made.rows] == ["no", "yes"]


def test_counts_of_a_pair_have_the_arm_in_the_clear(path: Ballot) -> None:
    counts = path.counts(questions="car,paid", by="region")
    sent = Counter(
        (one.strata["region"], one.symbols[0], one.strata["paid"])
        for one in path.sent
        if one.strata["arm"] == "clear"
    )
    part = counts.part("car", "paid", arm="clear")
    for stratum in part.strata:
        region = stratum.by["region"]
        cells = [(region, car, paid) for car in (0, 1) for paid in ("no", "yes")]
        assert list(stratum.counts) == [sent[cell] for cell in cells]
    assert [one.arm for one in counts] == ["clear", "weak", "strong"]
    # The server's estimate of the pair is the mean of the arms, as of a single question.
    together = path.counts(questions="car,paid")
    shares = [(part.n, part.shares(part.stratum())) for part in together]
    targets = path.estimates(targets='["car", "paid"]')["questions"]
    for i, row in enumerate(targets[0]["rows"]):
        mean = sum(n * float(of_arm[i] or 0) for n, of_arm in shares) / PEOPLE
        assert row["estimate"] == pytest.approx(mean, abs=1e-9)


def test_counts_are_grouped_only_by_answers_that_divide_cells(path: Ballot) -> None:
    """Reports of the arm in the clear have no stratum of `paid`: all of them would be left out."""
    for by in ("paid", "region,paid"):
        answer = path.get("counts", by=by)
        assert (answer.status_code, answer.get_json()["code"]) == (422, "strata_invalid")
    counts = path.counts(by="region")
    assert [question.id for question in counts.strata_questions] == ["region"]
    assert {stratum.by["region"] for part in counts for stratum in part.strata} == {"n", "s"}


def test_a_result_is_replayed(path: Ballot) -> None:
    for query in ({"by": "arm", "compare": "clear"}, {}, {"by": "region"}, {"by": "day"}):
        body = path.estimates(**query)
        again = path.services.analysis.replay(body)
        assert json.loads(again) == body


REPORTS: list[tuple[dict[str, Any], str, str]] = [
    ({"strata": {"region": "n"}}, "strata_invalid", "strata.arm"),
    ({"strata": {"region": "n", "arm": "other"}}, "strata_invalid", "strata.arm"),
    ({"strata": {"arm": "weak"}}, "strata_invalid", "strata"),
    ({"strata": {"region": "n", "arm": "weak", "paid": "no"}}, "strata_invalid", "strata"),
    ({"y": [0]}, "symbol_unknown", "y"),
    ({"y": [0, 0, 0]}, "symbol_unknown", "y"),
    ({"strata": {"region": "n", "arm": "clear", "paid": "no"}}, "symbol_unknown", "y"),
    (
        {"strata": {"region": "n", "arm": "clear", "paid": "x"}, "y": [0]},
        "strata_invalid",
        "strata.paid",
    ),
]


@pytest.mark.parametrize(("change", "code", "field"), REPORTS)
def test_reports_of_no_arm_are_refused(
    path: Ballot, change: dict[str, Any], code: str, field: str
) -> None:
    good = {
        "v": 1,
        "doc": path.document.digest,
        "id": "ab" * 16,
        "y": [0, 1],
        "strata": {"region": "n", "arm": "weak"},
        "token": None,
    }
    answer = path.http.post(f"/v1/surveys/{path.survey}/reports", json=good | change)
    assert (answer.status_code, answer.get_json()["code"]) == (422, code)
    assert answer.get_json()["field"] == field


FILES: list[tuple[str, str, str]] = [
    ("share: 2, blocks", "share: 0, blocks", "arms[2].share"),
    ("blocks: [strong]", "blocks: [none]", "arms[2].blocks"),
    ("strata: [paid]", "strata: [car]", "arms[0].strata"),
    ("blocks: [strong]", "blocks: [strong, weak]", "arms[2]"),
    ("id: strong, share", "id: weak, share", "arms"),
    ("id: region,", "id: arm,", "arms[0]"),
    ("blocks: [weak]}\n", "blocks: [weak, weak]}\n", "arms[1].blocks"),
    ("share: 2, blocks", 'share: "0.01", blocks', "arms[2].share"),
    ("id: region,", "id: paid,", "strata"),
]


@pytest.mark.parametrize(("old", "new", "field"), FILES)
def test_arms_of_a_file_that_are_none_are_refused(old: str, new: str, field: str) -> None:
    text = FILE.decode()
    assert old in text
    with pytest.raises(InvalidInput) as refused:
        parse_definition(text.replace(old, new).encode())
    assert refused.value.field == field


def versions_of(tmp_path: Path, *files: bytes) -> Iterator[tuple[Services, SurveyDocument]]:
    """Publish each version of a survey in turn."""
    url = SecretStr(f"sqlite:///{tmp_path / 'frankly.db'}")
    settings = Settings(home=tmp_path / "home", database_url=url, public_url=ORIGIN)
    with closing(opened(settings, FixedClock(NOW), Passwords(CHEAP))) as services:
        for file in files:
            services.surveys.apply(parse_definition(file))
            survey = services.surveys.publish("split").survey_id
            yield services, services.surveys.versions(survey)[-1]


def answer_all(
    services: Services, document: SurveyDocument, n: int, yes: float, item: float | None = None
) -> None:
    """Store and release reports of people of whom a share says yes; `item` : who passes it."""
    assert document.arms is not None
    rng, sent = Random(document.version), []
    for i in range(n):
        arm = document.arms.draw(rng.getrandbits)
        view: Any = document.views[arm]
        truth = int(rng.random() < yes)
        y = [one.mechanism.sample(truth, rng.getrandbits) for one in view.blocks]
        strata = {"arm": arm, "region": "n"}
        strata |= {"paid": "yes" if truth else "no"} if arm == "clear" else {}
        if item is not None:
            strata["check"] = "passed" if rng.random() < item else "failed"
        name = f"{document.version:016x}{i:016x}"
        sent.append(
            {"v": 1, "doc": document.digest, "id": name, "y": y, "strata": strata, "token": None}
        )
    for start in range(0, n, 400):
        outcomes = services.intake.accept_batch(document.survey, sent[start : start + 400])
        assert len(outcomes) == len(sent[start : start + 400])
    services.releasing.release()


def test_arms_are_compared_among_people_of_one_mixture_of_versions(tmp_path: Path) -> None:
    """In the second version the shares are others, and so are the people: not a difference of arms."""
    first = FILE.replace(b"id: clear, share: 1", b"id: clear, share: 9")
    second = FILE.replace(b"id: weak, share: 1", b"id: weak, share: 9").replace(b"Split", b"Again")
    survey = ""
    for number, (services, document) in enumerate(versions_of(tmp_path, first, second)):
        survey = document.survey
        answer_all(services, document, 600, (0.2, 0.7)[number])
        if number == 1:
            body = services.analysis.estimates(survey, by="arm", compare="all")
            whole = services.analysis.estimates(survey)
            digest = document.digest
    paid = [one for one in body["questions"] if one["id"] == "paid"]
    assert [one["documents"] for one in paid] == [[digest]] * 3
    assert sum(one["n"] for one in paid) == 600
    assert {one["version"] for one in body["arms"]} == {1, 2}
    # All together they stay in.
    (together,) = [one for one in whole["questions"] if one["id"] == "paid"]
    assert together["n"] == 1200


def test_the_same_arms_of_two_versions_are_compared_together(tmp_path: Path) -> None:
    again = FILE.replace(b"Split", b"Again")
    for number, (services, document) in enumerate(versions_of(tmp_path, FILE, again)):
        answer_all(services, document, 400, (0.2, 0.7)[number])
        if number == 1:
            body = services.analysis.estimates(document.survey, by="arm")
    assert sum(one["n"] for one in body["questions"] if one["id"] == "paid") == 800


ITEM = (
    "instructed:\n  id: check\n  text: {en: Choose B.}\n  answer: b\n  choices:\n"
    + "".join(f"  - {{id: {name}, label: {{en: {name.upper()}}}}}\n" for name in "abcd")
).encode()


def test_an_item_corrects_the_answers_of_all_arms(tmp_path: Path) -> None:
    for services, document in versions_of(tmp_path, FILE + ITEM):
        answer_all(services, document, 1200, 0.2, item=0.9)
        for by in (None, "arm"):
            body = services.analysis.estimates(document.survey, by=by)
            paid = [one for one in body["questions"] if one["id"] == "paid"]
            assert len(paid) == (1 if by is None else 3)
            for one in paid:
                assert one["random_answers"]["shown"]
                assert one["rows"][1]["corrected"] is not None
                # One in ten fails an item of four choices: 13 % answer at random, one way or the other.
                assert 0.03 < one["random_answers"]["random"] < 0.25


def test_a_file_with_arms_is_written_as_it_was_read() -> None:
    definition = parse_definition(FILE)
    assert parse_definition(definition.to_yaml()) == definition
