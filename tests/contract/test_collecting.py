# SPDX-License-Identifier: Apache-2.0
"""Collection from SDK to server: each report is stored once, on both databases."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta

import pytest
from frankly_protocol.documents import SurveyDocument
from frankly_sdk import NetworkError

from tests.contract.conftest import ANSWERS, NOW, STRATA, Site

N = 30


def test_every_answer_is_stored_and_counted_once(
    site: Site, answer_as: Callable[[str], str]
) -> None:
    assert Counter(answer_as(str(i)) for i in range(N)) == {"accepted": N}
    assert site.stored() == N
    site.services.releasing.release()
    with site.services.database.reading("test") as tx:
        counts = tx.counts.of_document(site.digest)
        assert tx.counts.recount(site.survey_id) == []
    assert {
        block: sum(n for key, n in counts.items() if key.block == block) for block in range(3)
    } == {0: N, 1: N, 2: N}
    assert {key.stratum for key in counts} == {'{"region":"south"}'}


def test_reports_have_the_fields_of_the_schema_and_one_length(site: Site) -> None:
    transport = site.transport()
    for i in range(N):
        with site.client(str(i), transport) as client:
            smokes, drinks, moves = (
                ("no", "yes")[i % 2],
                ("never", "weekly", "daily")[i % 3],
                "weekly",
            )
            client.answer({"smokes": smokes, "drinks": drinks, "moves": moves}, strata=STRATA)
    assert len({len(body) for body in transport.posted}) == 1
    for body in transport.posted:
        report = json.loads(body)
        assert set(report) == {"v", "doc", "id", "y", "strata", "token"}
        assert (report["v"], report["doc"], report["strata"], report["token"]) == (
            1,
            site.digest,
            STRATA,
            None,
        )
    assert len({json.loads(body)["id"] for body in transport.posted}) == N


def test_replayed_reports_change_nothing(site: Site, answer_as: Callable[[str], str]) -> None:
    transport = site.transport()
    with site.client("a", transport) as client:
        client.answer(ANSWERS, strata=STRATA)
    (body,) = transport.posted
    url = f"/v1/surveys/{site.survey_id}/reports"
    for _ in range(10):
        again = transport.http.post(url, data=body, content_type="application/json")
        assert (again.status_code, again.get_json()["status"]) == (200, "duplicate")
    report = json.loads(body)
    altered = {**report, "y": [1 - report["y"][0], *report["y"][1:]]}
    refused = transport.http.post(url, data=json.dumps(altered), content_type="application/json")
    assert (refused.status_code, refused.get_json()["code"]) == (409, "id_conflict")
    assert site.stored() == 1


def test_a_lost_answer_is_sent_again_and_stored_once(site: Site) -> None:
    transport = site.transport()
    transport.lose = 3
    with site.client("a", transport) as client:
        assert client.answer(ANSWERS, strata=STRATA, patience_s=3600).code == "duplicate"
    assert len(transport.posted) == 4
    assert len(set(transport.posted)) == 1
    assert site.stored() == 1


def test_many_answers_are_sent_in_batches_and_stored_once(site: Site) -> None:
    transport = site.transport()
    transport.lose = 1
    rows = [(f"person {i}", ANSWERS, STRATA) for i in range(101)]
    with site.client("a", transport) as client:
        assert {row.status for row in client.randomise_many(rows)} == {"sealed"}
        codes = Counter(receipt.code for receipt in client.flush())
    # The response of the first batch is lost, so its reports are sent again, one by one.
    assert codes == {"duplicate": 100, "accepted": 1}
    assert len(transport.posted) == 1 + 100 + 1
    assert site.stored() == 101


def test_too_early_waits_and_closed_is_final(site: Site) -> None:
    """The device's clock may be off by ten minutes; the server's clock decides."""
    early, late = NOW - timedelta(days=40), NOW + timedelta(days=40)
    for name, at, status, code in (
        ("a", early, "queued", "too_early"),
        ("b", late, "refused", "closed"),
    ):
        with site.client(name, site.transport(at)) as client:
            receipt = client.answer(ANSWERS, strata=STRATA, patience_s=0)
        assert (receipt.status, receipt.code) == (status, code)
    assert site.stored() == 0
    with site.client(
        "a", site.transport()
    ) as client:  # the survey is open now, so the sealed report is sent automatically
        assert [one.status for one in client.flush()] == ["sent"]
    assert site.stored() == 1


def test_the_document_served_is_byte_for_byte_what_was_signed(site: Site) -> None:
    http = site.transport().http
    served = http.get(f"/v1/surveys/{site.survey_id}/document")
    assert served.data == site.services.surveys.envelope(site.survey_id)
    document = SurveyDocument.from_envelope(served.data)
    assert document.digest == site.digest
    document.require_private()


def test_a_missing_survey_is_a_network_error_that_says_what_to_do(site: Site) -> None:
    site.link = site.link.replace(site.survey_id, "0" * 32)
    with pytest.raises(NetworkError, match="link") as caught:
        site.client("a", site.transport())
    assert caught.value.code == "not_found"
