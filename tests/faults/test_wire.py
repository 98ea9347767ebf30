# SPDX-License-Identifier: Apache-2.0
"""Every byte sent, read from the socket: only the schema, one length, no planted markers.

The sync client, asyncio and the background sender send the same bytes.
"""

import re
from collections import Counter
from pathlib import Path

import pytest
from frankly_sdk import NetworkError, Policy
from frankly_sdk.transport import HttpTransport

from tests.faults.servers import OK, Site, listening, site
from tests.frankly_sdk.drivers import OPENERS

QUESTIONS = {"smokes": ["no", "yes"], "walks": [f"c{i}" for i in range(12)]}


def exact(served: Site) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    """Return exact patterns of the allowed requests; only the id and the two symbols vary."""
    document = served.document
    host, digest = (
        re.escape(served.origin.removeprefix("http://")).encode(),
        document.digest.encode(),
    )
    fixed = rb"Host: %s\r\nUser-Agent: frankly\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n"
    fixed %= host
    survey = document.survey.encode()
    get = rb"GET (?:/v1/keys/chain|/v1/surveys/%s/document\?digest=%s) HTTP/1\.1\r\n%s\r\n" % (
        survey,
        digest,
        fixed,
    )
    body = (
        rb'\{"v":1,"doc":"%s","id":"[0-9a-f]{32}","y":\[[01],(?:[0-9]|1[01])\],"strata":\{\},"token":null\} ?'
        % digest
    )
    length = rb"Content-Length: %d\r\n" % document.report_length
    post = rb"POST /v1/surveys/%s/reports HTTP/1\.1\r\n%s" % (survey, fixed)
    post += rb"Content-Type: application/json\r\n%s\r\n%s" % (length, body)
    return re.compile(get), re.compile(post)


@pytest.mark.parametrize("name", OPENERS)
def test_only_the_schema_is_sent_and_in_one_length(name: str, full: bool, tmp_path: Path) -> None:
    """10,000 answers with --full. The complete headers and bodies of all requests are compared."""
    count = 10_000 if full else 60 if name == "sync" else 20
    with site(QUESTIONS) as served:
        device = OPENERS[name](served.link, tmp_path / "s.db", Policy(cap="2"), spread_s=0)
        with device as client:
            for i in range(count):
                answers = {
                    "smokes": QUESTIONS["smokes"][i % 2],
                    "walks": QUESTIONS["walks"][i % 12],
                }
                assert client.answer(answers, respondent=f"p{i}").status == "sent"
        get, post = exact(served)
    kinds = Counter(
        "get" if get.fullmatch(r) else "post" if post.fullmatch(r) else "other"
        for r in served.requests
    )
    assert kinds == {"get": 2, "post": count}
    bodies = [
        request.partition(b"\r\n\r\n")[2]
        for request in served.requests
        if request.startswith(b"POST")
    ]
    assert {len(body) for body in bodies} == {served.document.report_length}
    assert len({body[body.index(b'"id"') :][6:38] for body in bodies}) == count
    assert not any(b"p%d" % i in request for i, request in enumerate(served.requests))


MARKERS = {
    "Set-Cookie": b"frankly=planted01; Path=/; Max-Age=999999",
    "Set-Cookie2": b"planted02=1",
    "ETag": b'"planted03"',
    "Last-Modified": b"Thu, 01 Jan 1970 00:00:04 GMT",
    "Link": b"</planted05>; rel=preload",
    "Alt-Svc": b'h2="planted06.example:443"; ma=999999',
    "Location": b"/planted07",
    "Content-Location": b"/planted08",
    "Refresh": b"0; url=/planted09",
    "WWW-Authenticate": b'Basic realm="planted10"',
    "Strict-Transport-Security": b"max-age=999999; planted11",
    "Reporting-Endpoints": b'default="https://planted12.example"',
}


@pytest.mark.parametrize("name", OPENERS)
def test_12_planted_markers_never_come_back(name: str, tmp_path: Path) -> None:
    """They are planted in every response; the app is opened three times."""
    extra = b"".join(name.encode() + b": " + value + b"\r\n" for name, value in MARKERS.items())
    assert len(MARKERS) == 12
    with site(extra=extra) as served:
        for i in range(3):
            device = OPENERS[name](served.link, tmp_path / "s.db", Policy(cap="9"), spread_s=0)
            with device as client:
                client.answer({"smokes": "no"}, respondent=str(i))
        OPENERS[name](served.link, tmp_path / "other.db", Policy(cap="9")).close()
    all_requests = b"\n".join(served.requests).lower()
    assert len(served.requests) == 2 + 3 + 2
    for word in (
        b"planted",
        b"cookie",
        b"if-none-match",
        b"if-modified-since",
        b"authorization",
        b"jan 1970",  # the year alone can stand in a random id
        b"referer",
    ):
        assert word not in all_requests
    first, second = (served.requests[i] for i in (0, -2))
    assert first == second, "another install must request the keys with the same bytes"


REDIRECTS = [
    b"301 Moved Permanently",
    b"302 Found",
    b"303 See Other",
    b"307 Temporary Redirect",
    b"308 Permanent Redirect",
]


@pytest.mark.parametrize("line", REDIRECTS, ids=lambda line: line[:3].decode())
def test_redirects_are_not_followed(line: bytes) -> None:
    received: list[bytes] = []

    def talk(connection) -> None:  # type: ignore[no-untyped-def]
        while request := connection.recv(65536):
            received.append(request)
            connection.sendall(
                b"HTTP/1.1 " + line + b"\r\nLocation: /planted\r\nContent-Length: 0\r\n\r\n"
            )

    with listening(talk) as origin:
        for _ in range(2):
            transport = HttpTransport()
            with pytest.raises(NetworkError) as caught:
                transport.get(f"{origin}/v1/keys", 1000)
            transport.close()
            assert caught.value.code == "redirect"
    assert len(received) == 2
    assert b"planted" not in b"".join(received)
    assert OK not in b"".join(received)
