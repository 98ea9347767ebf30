# SPDX-License-Identifier: Apache-2.0
"""Garbage sent by an owner to all routes of the pages for people, which are not in the OpenAPI
document.

Names of fields are read from the templates; values are those that forms offer, edges of numbers,
and arbitrary text. No status may be 500, or 503 for an error of the database, such as PostgreSQL's
refusals of NUL characters and of too large numbers.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from werkzeug.routing import Rule

from tests.frankly_server.web.admin.office import PASSWORD, Office, make_office, send

MARK = "<script>alert(7)</script>"
EDGES = ["", "0", "-1", "1", "3.5", "1e9", "NaN", str(2**31), str(2**63), "9" * 5000, "٣", "\x00", "a\x00b", "\ud800",
         "\u202e", "../../etc/passwd", "{{7*7}}", "' OR 1=1 --", MARK, "yes", "\r\nX: y", "x" * 70_000]  # fmt: skip
TEXT = st.sampled_from(EDGES) | st.text(max_size=40)
# Signing out would end the test's session; other tests cover this route.
LEFT_OUT = {"/admin/sign-out"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def office(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Office]:
    """An office on each kind of database; forms that are valid by chance may change it."""
    postgres = request.getfixturevalue("postgres") if request.param == "postgresql" else None
    url = postgres.create() if postgres else None
    created_office = make_office(tmp_path_factory.mktemp("garbage"), url)
    yield created_office
    created_office.services.close()
    if postgres:
        postgres.drop(url)


def pages(office: Office) -> list[tuple[str, Rule]]:
    """Return every method of every page and of the files that the hosted page loads."""
    return [
        (method, rule)
        for rule in office.app.url_map.iter_rules()
        if rule.rule.startswith(("/admin/", "/s/", "/sdk/", "/results/"))
        and rule.rule not in LEFT_OUT
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]


def field_names(root: Path) -> list[str]:
    """Return the names of every field and parameter in the templates."""
    folder = root / "server" / "frankly_server" / "web" / "admin" / "templates"
    text = "".join(path.read_text() for path in sorted(folder.rglob("*.html")))
    names = (
        set(re.findall(r'name="(\w+)"', text))
        | set(re.findall(r"[?&](\w+)=", text))
        | {"before", "target", "block"}
    )
    assert len(names) > 20
    return sorted(names - {"csrf"})


def offered(root: Path) -> list[str]:
    """Return the values that the forms offer."""
    folder = root / "server" / "frankly_server" / "web" / "admin" / "templates"
    return sorted(
        {
            v
            for path in folder.rglob("*.html")
            for v in re.findall(r'value="([\w.-]+)"', path.read_text())
        }
    )


def address(rule: Rule, parts: dict[str, str]) -> str:
    """Fill in the variables of a URL rule with existing or made-up values."""
    return re.sub(
        r"<(?:\w+:)?(\w+)>",
        lambda names: quote(parts[names[1]].encode("utf-8", "surrogatepass")),
        rule.rule,
    )


def body(
    draw_fields: list[tuple[str, str]], upload: bytes | None, kind: str, csrf: str
) -> dict[str, Any]:
    """Return the options of a POST request: a form in either encoding, or other bytes."""
    if kind == "bytes":
        return {"data": upload or b"\x00", "content_type": "multipart/form-data; boundary=x"}
    if kind == "json":
        return {"data": b'{"csrf":1}', "content_type": "application/json"}
    fields: dict[str, Any] = {"csrf": csrf}
    for name, value in draw_fields:
        fields.setdefault(name, []).append(value.encode("utf-8", "surrogatepass"))
    if upload is not None and kind == "multipart":
        name = ("counts_file", "logo")[len(upload) % 2]
        fields[name] = (io.BytesIO(upload), "counts.csv")
    encoding = "multipart/form-data" if kind == "multipart" else "application/x-www-form-urlencoded"
    return {"data": fields, "content_type": encoding}


def signed_in(office: Office) -> FlaskClient:
    return office.client("owner")


def test_no_request_to_a_page_causes_a_server_error(office: Office, root: Path, full: bool) -> None:
    every = pages(office)
    assert {rule.rule for _, rule in every} >= {
        "/s/<survey_id>",
        "/sdk/v1/<name>",
        "/admin/people",
        "/admin/keys",
    }
    path_values = {"survey_id": office.survey, "job_id": office.job, "prefix": office.key,
             "account_id": office.account,
             "version": "1", "number": "1", "question_id": "smokes", "digest": "0" * 16,
             "secret": office.services.access.create("reader", "x", surveys=[office.survey])[13:],
             "name": "index.js", "chart": "1.svg"}  # fmt: skip
    # Every variable, as chance decides which routes are tried.
    assert {name for _, rule in every for name in rule.arguments} <= path_values.keys()
    names = field_names(root)
    client, csrf = signed_in(office), ""
    request_counts: Counter[tuple[str, str]] = Counter()
    codes: Counter[int] = Counter()

    @settings(
        max_examples=15_000 if full else 60,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(
        page=st.sampled_from(every),
        exists=st.booleans(),
        part=TEXT.filter(bool),
        query=st.lists(st.tuples(st.sampled_from(names), TEXT), max_size=3),
        fields=st.lists(
            st.tuples(st.sampled_from(names), TEXT | st.sampled_from(offered(root))), max_size=8
        ),
        upload=st.none()
        | st.binary(max_size=60)
        | st.sampled_from([b"cheated,no,yes\na,1,2\nb,3,4\n", b"\xff\xfe"]),
        kind=st.sampled_from(["multipart"] * 4 + ["urlencoded"] * 3 + ["bytes", "json"]),
    )
    def run(
        page: tuple[str, Rule],
        exists: bool,
        part: str,
        query: list[tuple[str, str]],
        fields: list[tuple[str, str]],
        upload: bytes | None,
        kind: str,
    ) -> None:
        nonlocal client, csrf
        method, rule = page
        if not csrf or client.get("/admin/account").status_code == 303:
            client = signed_in(office)
            csrf = token(client)
        where = address(rule, path_values if exists else dict.fromkeys(path_values, part))
        query_bytes = [(name, value.encode("utf-8", "surrogatepass")) for name, value in query]
        options = body(fields, upload, kind, csrf) if method == "POST" else {}
        answer = client.open(where, method=method, query_string=query_bytes, **options)
        request_counts[method, rule.rule] += 1
        codes[answer.status_code] += 1
        assert answer.status_code < 500, (method, where[:80], fields, answer.status_code)
        assert MARK.encode() not in answer.data
        assert b"Traceback" not in answer.data
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]

    run()
    total = sum(codes.values())
    print(total, "requests to", len(request_counts), "of", len(every), "routes:", dict(codes))  # noqa: T201 - with -s
    # Chance decides which of the few requests are valid ones, and this one always is.
    assert codes[200] > 0 or not full
    assert signed_in(office).get("/admin/account").status_code == 200
    assert set(request_counts) == {(method, rule.rule) for method, rule in every} or not full


def token(client: FlaskClient) -> str:
    csrf_field = re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get("/admin/account").text)
    assert csrf_field
    return csrf_field[1]


@pytest.mark.parametrize("value", ["", "0" * 64, None])
def test_no_form_is_accepted_without_its_token(office: Office, value: str | None) -> None:
    """The forms come from the application's URL map, so that new forms are tested."""
    client = signed_in(office)
    tried = 0
    for method, rule in pages(office):
        if method != "POST":
            continue
        where = address(rule, {"survey_id": office.survey, "job_id": office.job, "prefix": office.key,
                               "account_id": office.account, "question_id": "smokes", "version": "1",
                               "number": "1"})  # fmt: skip
        data = {} if value is None else {"csrf": value}
        assert client.post(where, data=data).status_code == 403, where
        tried += 1
    assert tried >= 15
    assert client.get("/admin/account").status_code == 200


def test_unknown_fields_of_a_form_are_refused(office: Office) -> None:
    """An owner cannot set a colleague's organisation, password, id or scope by such a field."""
    client = signed_in(office)
    extra_fields = {
        "organisation": "other",
        "password": PASSWORD,
        "id": "0" * 32,
        "disabled": "",
        "failures": "0",
    }
    answer = send(client, "/admin/people", email="mass@example.org", role="viewer", **extra_fields)
    assert answer.status_code == 422
    answer = send(
        client, "/admin/keys", label="mass", role="analyst", organisation="other", prefix="AAAAAAAA"
    )
    assert answer.status_code == 422
    for organisation in ("main", "other"):
        people = office.services.accounts.list(organisation)
        assert "mass@example.org" not in {row.email for row in people}
    assert "mass" not in {row.label for row in office.services.access.list()}


@pytest.mark.parametrize(
    "survey", ["x", "../../etc/passwd", "0" * 31, "AB" * 16, "0" * 32, "\u0663" * 32]
)
def test_a_key_for_an_impossible_survey_is_refused(office: Office, survey: str) -> None:
    answer = send(signed_in(office), "/admin/keys", label="odd", role="analyst", survey=survey)
    assert answer.status_code == 404
    assert "odd" not in {row.label for row in office.services.access.list()}
