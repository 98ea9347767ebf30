# SPDX-License-Identifier: Apache-2.0
"""Forms of the wizard: the drafts that they create, and errors for invalid input, never a 500 or a
stack trace."""

import html
import io
import math
import re
from typing import Any

import pytest
from flask.testing import FlaskClient
from frankly_protocol.clock import FixedClock
from frankly_protocol.report import Report
from frankly_server.surveys.outbound import Post
from frankly_server.surveys.webhooks import Webhooks

from tests.frankly_server.web.admin.office import Office, ask, begin, finish_job, send
from tests.frankly_server.web.site import NOW

COUNTS = b",no,yes\r\nlow,120,30\r\nhigh,40,60\r\n"


@pytest.fixture(scope="module")
def desk(office: Office) -> tuple[FlaskClient, str]:
    """An admin's browser, and the URL of the admin's draft."""
    client = office.client("admin")
    return client, begin(client).headers["Location"].removesuffix("/questions")


def test_a_prior_is_uploaded_and_its_margins_follow(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, survey = desk
    form = {
        "block": "tired",
        "secret": "attribute",
        "epsilon": "0.5",
        "name": "Income",
        "counts_file": (io.BytesIO(COUNTS), "counts.csv"),
        "source": "a public table",
        "backstop": "yes",
    }
    answer = send(client, f"{survey}/protection", **form)
    assert (answer.status_code, answer.headers["Location"]) == (
        303,
        f"{survey}/protection?block=tired&saved=yes",
    )
    block = office.services.surveys.draft(survey.rsplit("/", 1)[1]).blocks[0]
    assert block.prior is not None
    assert (block.notion, block.prior.joint) == ("lip", (("120", "30"), ("40", "60")))
    assert "±" in client.get(f"{survey}/margins?block=tired").text


def test_small_cells_need_a_confirmation(desk: tuple[FlaskClient, str]) -> None:
    client, survey = desk
    form = {"block": "tired", "secret": "attribute", "epsilon": "0.5", "name": "Income",
            "counts": ",no,yes\nlow,120,3\nhigh,40,60", "source": "a pilot", "backstop": "yes"}  # fmt: skip
    answer = send(client, f"{survey}/protection", **form)
    assert answer.status_code == 409
    assert "reveal individual people" in answer.text
    assert "low,120,3" in answer.text  # the typed input is still there
    assert send(client, f"{survey}/protection", **(form | {"public": "yes"})).status_code == 303


def test_answers_sent_unchanged_are_a_warning_and_not_published(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, _ = desk
    survey = begin(client, title="Unchanged").headers["Location"].removesuffix("/questions")
    form = {"block": "tired", "secret": "attribute", "epsilon": "1", "name": "Colour",
            "counts": ",no,yes\nred,100,100\nblue,100,100", "source": "none"}  # fmt: skip
    assert send(client, f"{survey}/protection", **form).status_code == 303
    assert "sent unchanged" in client.get(f"{survey}/margins").text
    survey_id = survey.rsplit("/", 1)[1]
    job = office.services.jobs.get(survey_id, finish_job(office.services, survey_id))
    assert job.state == "failed"
    assert "unchanged" in job.detail
    assert send(client, f"{survey}/protection", **(form | {"unchanged": "yes"})).status_code == 303
    job = office.services.jobs.get(survey_id, finish_job(office.services, survey_id))
    assert job.state == "done"


def test_a_name_in_use_is_replaced_silently(office: Office) -> None:
    clients = [office.client(caller) for caller in ("admin", "foreign owner")]
    survey_ids = [
        begin(client, title="The same").headers["Location"].split("/")[3] for client in clients
    ]
    assert survey_ids[0] != survey_ids[1]
    assert clients[1].get(f"/admin/surveys/{survey_ids[1]}/questions").status_code == 200
    assert clients[1].get(f"/admin/surveys/{survey_ids[0]}/questions").status_code == 404


def test_a_survey_is_duplicated_as_a_draft_without_times(office: Office) -> None:
    client = office.client("admin")
    names = set()
    for _ in range(2):
        answer = send(client, f"/admin/surveys/{office.survey}/duplicate")
        assert answer.status_code == 303
        copy = office.services.surveys.draft(answer.headers["Location"].split("/")[3])
        original = office.services.surveys.draft(office.survey)
        assert copy.blocks == original.blocks
        assert (copy.title, copy.opens, copy.closes) == ({"en": "Habits (2)"}, None, None)
        assert office.services.surveys.versions(copy.name) == []
        names.add(copy.name)
    assert "habits-2" in names
    assert len(names) == 2


def test_templates_and_files_begin_a_survey_too(office: Office) -> None:
    client = office.client("admin")
    chosen = [{"how": "template", "template": name} for name in ("census", "validation")]
    for form in (*chosen, {"how": "file", "file": office.file}):
        answer = send(client, "/admin/surveys/new", **form)
        assert answer.status_code == 303
        for page in ("questions", "protection", "margins", "try", "answers", "embed"):
            assert (
                client.get(answer.headers["Location"].replace("questions", page)).status_code == 200
            )


def test_the_cost_of_a_skewed_prior_is_shown_before_and_after_publishing(office: Office) -> None:
    client = office.client("admin")
    skewed = b"""name: skewed
title: {en: Skewed}
languages: [en]
min_reports: 10
budget: "3"
blocks:
  - id: use
    notion: ldp
    epsilon: "2"
    prior: {joint: [[900, 20, 20, 20, 20, 20]], source: made up}
    questions:
      - id: use
        text: {en: "Which?"}
        choices: [CHOICES]
""".replace(b"CHOICES", b", ".join(b'{id: c%d, label: {en: "c%d"}}' % (x, x) for x in range(6)))
    start = send(client, "/admin/surveys/new", how="file", file=skewed.decode()).headers["Location"]
    line = re.compile(
        r"if all choices are equally common, this needs \d+% more reports than subset-selection"
    )
    assert re.search(
        "optimal: " + line.pattern, client.get(start.replace("questions", "margins")).text
    )
    office.services.surveys.publish("skewed")
    page = client.get(start.replace("questions", "publish")).text
    assert re.search("use: " + line.pattern, page)


# Name -> (changes to the default form, notion, questions of the block).
PROMISES: dict[str, tuple[dict[str, Any], str, tuple[str, ...]]] = {
    "belief": ({"notion": "lip", "secret": "attribute", "name": "Income"}, "lip", ("tired",)),
    "odds": ({"notion": "secret-ldp", "secret": "attribute", "name": "Income"}, "secret-ldp", ("tired",)),
    "two limits": ({"notion": "alip", "secret": "attribute", "name": "Income", "high": "0.4",
                    "epsilon": ""}, "alip", ("tired",)),
    "a sample": ({"notion": "rldp", "secret": "question", "other": "pay", "sample": "2000"}, "rldp", ("pay", "tired")),
    "another question": ({"notion": "lip", "secret": "question", "other": "pay"}, "lip", ("tired",)),
    "side channels": ({"notion": "srlip", "secret": "attribute", "name": "Income", "together": "home",
                       "counts": ",no-own,no-rent,yes-own,yes-rent\nlow,30,40,50,60\nhigh,60,50,40,30"}, "srlip",
                      ("tired", "home")),
}  # fmt: skip


def three_questions(client: FlaskClient) -> str:
    survey: str = begin(client, title="Three").headers["Location"].removesuffix("/questions")
    for question, choices in (("Pay?", "Low\nHigh"), ("Home?", "Own\nRent")):
        assert ask(client, survey, question, choices).status_code == 303
    return survey


@pytest.fixture(scope="module")
def three(desk: tuple[FlaskClient, str]) -> str:
    return three_questions(desk[0])


@pytest.mark.parametrize("name", PROMISES)
def test_every_promise_of_the_form_is_kept_in_the_draft(
    office: Office, desk: tuple[FlaskClient, str], three: str, name: str
) -> None:
    client, (form, notion, questions) = desk[0], PROMISES[name]
    usual = {"block": "tired", "epsilon": "0.5", "source": "x", "backstop": "yes",
             "counts": ",yes,no\nhigh,60,40\nlow,30,120"}  # fmt: skip
    answer = send(client, f"{three}/protection", **(usual | form))
    assert answer.status_code == 303, answer.text
    draft = office.services.surveys.draft(three.rsplit("/", 1)[1])
    block = next(block for block in draft.blocks if block.id == "tired")
    assert (block.notion, tuple(q.id for q in block.questions)) == (notion, questions)
    if name == "two limits":
        assert (block.epsilon_low, block.epsilon_high) == ("inf", "0.4")
    if questions != ("tired", "home"):  # columns and secrets are matched by name
        assert block.prior is not None
        rows = (("120", "30"), ("40", "60"))
        assert block.prior.joint == (rows if block.prior.secret == "pay" else rows[::-1])
    page_text = client.get(f"{three}/protection?block=tired").text
    assert f'value="{notion}" checked' in page_text
    assert client.get(answer.headers["Location"]).status_code == 200
    assert (
        send(client, f"{three}/protection", block="tired", epsilon="1").status_code == 303
    )  # and back again


def write_protection(client: FlaskClient, title: str, protection: str) -> str:
    """Create a draft whose protection is written in the file; return the survey's URL."""
    survey: str = begin(client, title=title).headers["Location"].removesuffix("/questions")
    page = client.get(f"{survey}/file").text
    text = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL).group(1))  # type: ignore[union-attr]
    usual = "- epsilon: '1'\n    id: tired\n    notion: ldp\n"
    assert usual in text
    lines = protection.strip().replace("\n", "\n    ")
    indented = text.replace(usual, f"- id: tired\n    {lines}\n").replace(
        "budget: '1'", "budget: '9'"
    )
    assert send(client, f"{survey}/file", file=indented).status_code == 303
    return survey


PAIRS = """
notion: metric-ldp
epsilons: [[inf, '0.75'], ['1.25', inf]]
ceiling_cap: '1.5'
"""


def test_levels_of_pairs_are_shown_and_replaced_only_with_a_tick(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client = desk[0]
    survey = write_protection(client, "Pairs", PAIRS)

    def block() -> Any:
        return office.services.surveys.draft(survey.rsplit("/", 1)[1]).blocks[0]

    before = block()
    assert (before.notion, before.epsilons) == ("metric-ldp", (("inf", "0.75"), ("1.25", "inf")))
    for page in ("questions", "protection", "margins", "try", "answers", "embed", "file"):
        assert client.get(f"{survey}/{page}").status_code == 200, page
    text = client.get(f"{survey}/protection").text
    assert "the notion metric-ldp" in text
    assert re.search(r'<th scope="row">no</th><td>–</td><td>0.75</td>', text)
    assert re.search(r'<th scope="row">yes</th><td>1.25</td><td>–</td>', text)
    assert "ceiling_cap: &#39;1.5&#39;" in text
    added = ask(client, survey, "Ill?", "No\nYes")
    assert added.status_code == 303
    assert block() == before
    refused = send(client, f"{survey}/protection", block="tired", epsilon="1")
    assert (refused.status_code, "tick the box to allow that" in refused.text) == (422, True)
    assert block() == before
    replaced = send(client, f"{survey}/protection", block="tired", epsilon="1", replace="yes")
    assert replaced.status_code == 303
    assert (block().notion, block().epsilons) == ("ldp", ())


@pytest.mark.parametrize(
    ("name", "side", "other"), [("pml", "high", "low"), ("pmc", "low", "high")]
)
def test_one_side_of_a_lift_is_unchanged(
    office: Office, desk: tuple[FlaskClient, str], name: str, side: str, other: str
) -> None:
    client = desk[0]
    prior = "prior: {secret: income, secrets: [low, high], joint: [['120', '30'], ['40', '60']], source: x}"
    protection = f"notion: {name}\nepsilon: '0.4'\n{prior}\nceiling_cap: '2.9957'"
    survey = write_protection(client, f"One side {name}", protection)

    def block() -> Any:
        return office.services.surveys.draft(survey.rsplit("/", 1)[1]).blocks[0]

    before = block()
    text = client.get(f"{survey}/protection").text
    assert "written in a file" not in text
    assert 'value="alip" checked' in text
    assert re.search(f'id="{side}"[^>]*value="0.4"', text)
    assert re.search(f'id="{other}"[^>]*value=""', text)
    form = {"block": "tired", "secret": "attribute", "name": "income", "notion": "alip", "source": "x",
            "backstop": "yes",
            "counts": ",no,yes\nlow,120,30\nhigh,40,60"}  # fmt: skip
    assert send(client, f"{survey}/protection", **form, **{side: "0.4"}).status_code == 303
    assert block() == before
    both = {"low": "0.5", "high": "0.4"}
    assert send(client, f"{survey}/protection", **form, **both).status_code == 303
    assert (block().notion, block().epsilon_low, block().epsilon_high) == ("alip", "0.5", "0.4")


def test_settings_that_the_form_lacks_are_written_in_the_file(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client = desk[0]
    survey = begin(client, title="In a file").headers["Location"].removesuffix("/questions")
    page = client.get(f"{survey}/file").text
    text = html.unescape(re.search(r"<textarea[^>]*>(.*?)</textarea>", page, re.DOTALL).group(1))  # type: ignore[union-attr]
    bent = text.replace("notion: ldp", "criterion: worst\n    notion: ldp")
    assert bent != text
    assert send(client, f"{survey}/file", file=bent).status_code == 303
    block = office.services.surveys.draft(survey.rsplit("/", 1)[1]).blocks[0]
    assert block.criterion == "worst"
    assert "the worst target as criterion" in client.get(f"{survey}/protection").text
    refused = send(client, f"{survey}/file", file=text.replace("name: in-a-file", "name: other"))
    assert (refused.status_code, "keep the name" in refused.text) == (422, True)
    refused = send(client, f"{survey}/file", file="a: [b")
    assert (refused.status_code, "a: [b" in refused.text) == (422, True)  # the form keeps the input


def test_a_rehearsal_shows_the_report(office: Office, desk: tuple[FlaskClient, str]) -> None:
    client = desk[0]
    where = f"/admin/surveys/{office.survey}/try"
    page = send(
        client, where, what="form", **{"q-smokes": "yes", "q-drinks": "never", "q-region": "south"}
    ).text
    snippet = re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)
    assert snippet
    report = Report.from_bytes(html.unescape(snippet.group(1)).encode())
    assert (len(report.symbols), report.strata) == (2, {"region": "south"})
    page = send(client, where, what="everybody", block="drinks", answer="daily").text
    assert page.count('class="truth"') == 3
    refused = send(client, where, what="form", **{"q-smokes": "yes"})
    assert (refused.status_code, "(drinks)" in refused.text) == (422, True)


def test_a_block_without_a_draft_does_not_hide_the_chances_of_others(
    desk: tuple[FlaskClient, str],
) -> None:
    client, _ = desk
    survey = begin(client, title="Two blocks").headers["Location"].removesuffix("/questions")
    assert ask(client, survey, "Hungry?", "No\nYes").status_code == 303
    form = {"block": "tired", "secret": "attribute", "epsilon": "1", "name": "Colour",
            "counts": ",no,yes\nred,100,100\nblue,100,100", "source": "none"}  # fmt: skip
    assert send(client, f"{survey}/protection", **form).status_code == 303
    answers = {"q-tired": "no", "q-hungry": "no"}
    tried = send(client, f"{survey}/try", what="form", block="hungry", **answers)
    assert (tried.status_code, "unchanged" in tried.text, "This would be sent" in tried.text) == (
        422,
        True,
        False,
    )
    assert "How likely each report is" in tried.text


def test_a_webhook_is_set_on_an_allowed_host_only(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, where = desk[0], f"/admin/surveys/{office.survey}/webhook"
    assert "FRANKLY_WEBHOOK_HOSTS" in client.get(where).text
    refused = send(client, where, url="https://hooks.example.org/x")
    assert (refused.status_code, "(url)" in refused.text) == (422, True)
    services = office.services
    services.webhooks = Webhooks(services.database, FixedClock(NOW), Post(["hooks.example.org"]))
    created = send(client, where, url="https://hooks.example.org/x")
    secret = re.search(r"<pre data-copy>(whsec_[A-Za-z0-9+/]{43}=)</pre>", created.text)
    assert secret
    assert secret.group(1) not in client.get(where).text  # shown once
    assert "https://hooks.example.org/x" in client.get(where).text
    for url in (
        "https://10.0.0.1/",
        "http://hooks.example.org/",
        "https://hooks.example.org@evil.example/",
    ):
        assert send(client, where, url=url).status_code == 422
    assert services.webhooks.of(office.survey).url == "https://hooks.example.org/x"
    assert send(client, f"{where}/remove").status_code == 303
    assert services.webhooks.of(office.survey).url is None
    trail = [event.action for event in services.accounts.trail("main", limit=5)]
    assert trail[:2] == ["webhook removed", "webhook set"]


def test_choices_that_look_alike_are_named_at_their_field(desk: tuple[FlaskClient, str]) -> None:
    client, survey = desk
    form = {"question": "Sure?", "choices": "Yes\n\u0423es", "how": "question", "title": "x"}
    answer = send(client, "/admin/surveys/new", **form)
    text = html.unescape(answer.text)
    said = "“Yes” and “\u0423es” of sure (en) look alike: “Yes” has U+0059 LATIN CAPITAL"
    assert (answer.status_code, said in text) == (422, True)
    described, invalid = re.findall(
        r'<textarea id="choices"[^>]*aria-describedby="([^"]*)"([^>]*)>', text
    )[0]
    assert described.split()[0] == "choices-error"
    assert invalid == ' aria-invalid="true"'
    assert re.search(r'id="choices-error">the choices “Yes” and', text)
    # Other errors of the form are shown only at the top.
    other = send(client, "/admin/surveys/new", **(form | {"choices": "A\nB", "question": ""}))
    assert other.status_code == 422
    assert "choices-error" not in other.text
    assert "aria-invalid" not in other.text
    # On the form of a question, which scripts complete, the refusal names the column.
    added = ask(client, survey, "Sure?", "Yes\n\u0423es")
    assert (added.status_code, said in html.unescape(added.text)) == (422, True)
    assert 'data-field="label-en"' in added.text


def test_doubtful_choices_are_a_warning_beside_the_publish_button(office: Office) -> None:
    client = office.client("admin")
    survey = begin(client, choices="Type O\nType 0").headers["Location"].removesuffix("/questions")
    text = html.unescape(client.get(f"{survey}/publish").text)
    assert "“Type O” and “Type 0” of tired (en) look alike" in text
    assert "cannot be published" not in text


# (Page of the draft or a URL, form) -> status.
BAD_FORMS: dict[str, tuple[str, dict[str, Any], int]] = {
    "no question": ("/admin/surveys/new", {"how": "question"}, 422),
    "one choice": ("/admin/surveys/new", {"how": "question", "title": "x", "question": "x", "choices": "x"}, 422),
    "equal choices": ("/admin/surveys/new", {"how": "question", "title": "x", "question": "x",
                                             "choices": "a\nＡ"}, 422),
    "bidi": ("/admin/surveys/new", {"how": "question", "title": "a\u202eb", "question": "x", "choices": "a\nb"}, 422),
    "NUL": ("/admin/surveys/new", {"how": "question", "title": "a\x00b", "question": "x", "choices": "a\nb"}, 422),
    "language": ("/admin/surveys/new", {"how": "question", "title": "x", "language": "!", "question": "x",
                                        "choices": "a\nb"}, 422),
    "no template": ("/admin/surveys/new", {"how": "template", "template": "../x"}, 404),
    "no YAML": ("/admin/surveys/new", {"how": "file", "file": "a: [b"}, 422),
    "question": ("new-question", {"kind": "yes-no", "place": "block", "text-en": ""}, 422),
    "question gone": ("questions/nothing/remove", {}, 404),
    "last question": ("questions/tired/remove", {}, 422),
    "minimum": ("text", {"title": "x", "min_reports": "-1"}, 422),
    "closes": ("text", {"title": "x", "min_reports": "10", "closes": "tomorrow"}, 422),
    "epsilon NaN": ("protection", {"block": "tired", "epsilon": "nan"}, 422),
    "epsilon 0": ("protection", {"block": "tired", "epsilon": "0"}, 422),
    "epsilon 1_0": ("protection", {"block": "tired", "epsilon": "1_0"}, 422),
    "mechanism": ("protection", {"block": "tired", "epsilon": "1", "mechanism": "magic"}, 422),
    "no block": ("protection", {"block": "nothing", "epsilon": "1"}, 404),
    "no counts": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x"}, 422),
    "decimal comma": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                     "source": "x", "counts": ",no,yes\nlow,0,5,0,5"}, 422),
    "wrong columns": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                     "source": "x", "counts": ",a,b,c\nlow,10,20,30\nhigh,10,20,30"}, 422),
    "columns of other answers": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                                "source": "x", "counts": ",a,b\nlow,10,20\nhigh,10,20"}, 422),
    "robust without a sample": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                               "notion": "rldp", "counts": ",no,yes\nlow,10,20\nhigh,10,20"}, 422),
    "srlip alone": ("protection", {"block": "tired", "epsilon": "1", "secret": "attribute", "name": "x",
                                   "notion": "srlip", "counts": ",no,yes\nlow,10,20\nhigh,10,20"}, 422),
    "alip without a side": ("protection", {"block": "tired", "secret": "attribute", "name": "x", "notion": "alip",
                                           "source": "x", "counts": ",no,yes\nlow,10,20\nhigh,10,20"}, 422),
    "together with nothing": ("protection", {"block": "tired", "epsilon": "1", "together": "nothing"}, 404),
    "trial of nothing": ("try", {"what": "everybody", "block": "nothing", "answer": "x"}, 404),
    "move a draft": ("move", {"move": "pause"}, 409),
    "move nowhere": ("move", {"move": "explode"}, 404),
    "stop at none": ("stop-rule", {"rule": "reports", "reports": "0"}, 422),
    "stop at words": ("stop-rule", {"rule": "reports", "reports": "٣"}, 422),
    "stop at a wide margin": ("stop-rule", {"rule": "margin", "points": "90"}, 422),
    "stop before publishing": ("stop-rule", {"rule": "margin", "points": "3"}, 409),
    "cancel nothing": ("jobs/" + "0" * 32 + "/cancel", {}, 404),
    "key of a foreign survey": ("/admin/keys", {"label": "x", "role": "analyst", "survey": "0" * 32}, 404),
    "key of no role": ("/admin/keys", {"label": "x", "role": "root"}, 422),
    "key without a note": ("/admin/keys", {"label": "", "role": "admin"}, 422),
    "no such key": ("/admin/keys/%00%00/revoke", {}, 404),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_FORMS)
def test_a_bad_form_is_explained(office: Office, desk: tuple[FlaskClient, str], name: str) -> None:
    page, form, status = BAD_FORMS[name]
    client, survey = desk
    answer = send(client, page if page.startswith("/") else f"{survey}/{page}", **form)
    assert (answer.status_code, answer.mimetype) == (status, "text/html"), answer.text
    assert "Traceback" not in answer.text
    assert "not accepted" in answer.text or "did not work" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "answers?target=x",
        "answers?target=0",
        "answers?colour=red",
        "margins?colour=red",
        "protection?colour=red",
        "try?colour=red",
        "/admin/audit?colour=red",
        "margins?block=x",
        "jobs/x",
        "versions/9",
        "/admin/audit?before=x",
    ],
)
def test_a_bad_address_is_explained(office: Office, path: str) -> None:
    client = office.client("owner")
    answer = client.get(path if path.startswith("/") else f"/admin/surveys/{office.survey}/{path}")
    assert answer.status_code in (404, 422)
    assert answer.mimetype == "text/html"


def test_a_form_that_is_too_large_is_refused_before_it_is_read(office: Office) -> None:
    client = office.client("admin")
    answer = client.post("/admin/surveys/new", data={"csrf": "x", "file": "x" * (3 * 2**20)})
    assert answer.status_code == 413


def test_margins_are_shown_for_the_given_population(
    office: Office, desk: tuple[FlaskClient, str]
) -> None:
    client, survey = desk
    text = client.get(f"{survey}/margins?population=1200").text
    assert "one of 1,200 people" in text
    assert ">1,200 answers<" in text
    assert "5,000 answers" not in text
    assert "5,000 answers" in client.get(f"{survey}/margins?population=").text


def test_margins_are_shown_for_the_expected_number_of_answers(own_office: Office) -> None:
    surveys = own_office.services.surveys
    client, path = own_office.client("viewer"), f"/admin/surveys/{own_office.survey}/margins"

    def columns(expected: int, least: int, query: str = "") -> dict[str, str]:
        """Return the cells of the chosen mechanism by column."""
        changes = {"expected_reports": expected, "min_reports": least}
        surveys.apply(surveys.draft("habits").model_copy(update=changes))
        text = client.get(path + query).text
        assert f"A result needs\n  {least} answers." in text
        row = text[text.index('class="chosen"') :].partition("</tr>")[0]
        return dict(re.findall(r'data-th="([0-9,]+) answers">([^<]*)<', row))

    few = columns(expected=80, least=81)
    assert list(few) == ["80", "500", "5,000", "50,000"]
    assert [number for number, cell in few.items() if cell == "no result"] == ["80"]
    enough = columns(expected=80, least=80)
    assert {number: cell for number, cell in enough.items() if number != "80"} == {
        number: cell for number, cell in few.items() if number != "80"
    }
    # By the formula for Warner at ε = 1.
    p = math.e / (1 + math.e)
    assert enough["80"] == f"±{100 * 1.959964 / (2 * (2 * p - 1) * math.sqrt(80)):.1f}"
    assert list(columns(expected=500, least=80)) == ["500", "5,000", "50,000"]
    assert list(columns(expected=700, least=80, query="?population=600")) == ["500", "600"]
    # The tables below compare margins at 5,000 answers, or of the whole population.
    compared = "no result, because a result needs\n  601: the margins are for comparison only."
    for least, query, count in (
        (600, "?population=600", 0),
        (601, "?population=600", 2),
        (601, "", 0),
    ):
        columns(700, least, query)
        assert client.get(path + query).text.count(compared) == count


def test_a_larger_minimum_of_an_earlier_version_is_shown(own_office: Office) -> None:
    surveys, client = own_office.services.surveys, own_office.client("admin")
    least = surveys.versions("habits")[0].min_reports
    for changed, words in ((least, None), (least - 1, f"needs {least}, not {least - 1}.")):
        surveys.apply(surveys.draft("habits").model_copy(update={"min_reports": changed}))
        for tab in ("/margins", "/publish"):
            page = client.get(f"/admin/surveys/{own_office.survey}{tab}").text
            assert ("Version 1 promised" in page) == (words is not None)
            assert words is None or words in page


@pytest.mark.parametrize("people", ["many", "-3", "1", "1.5", "9" * 17])
def test_an_impossible_population_is_refused(
    office: Office, desk: tuple[FlaskClient, str], people: str
) -> None:
    client, survey = desk
    answer = client.get(f"{survey}/margins?population={people}")
    assert answer.status_code == 422
    assert "(population)" in answer.text
    assert "5,000 answers" in answer.text  # the page is shown
