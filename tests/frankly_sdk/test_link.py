# SPDX-License-Identifier: Apache-2.0
"""Survey links: those that are accepted, and those that are refused before any socket opens."""

import pytest
from frankly_sdk import DocumentRejected, InsecureTransport, LinkError
from frankly_sdk.link import SurveyLink, is_host, require_collect, require_secure

from tests.refusals import refusal

ID, PIN = "ab" * 16, "cd" * 32
GOOD = [
    (f"https://host/s/{ID}#sha256={PIN}", "https://host", f"sha256:{PIN}"),
    (f"https://host:8443/s/{ID}", "https://host:8443", None),
    (f"http://127.0.0.1:8000/s/{ID}#sha256={PIN}", "http://127.0.0.1:8000", f"sha256:{PIN}"),
    (f"http://[::1]:8000/s/{ID}", "http://[::1]:8000", None),
    (f"http://localhost/s/{ID}", "http://localhost", None),
    # Spellings of one origin, which is the key of stored data.
    (f"HTTPS://HOST:443/s/{ID}", "https://host", None),
    (f"https://host:0443/s/{ID}", "https://host", None),
    (f"https://host:/s/{ID}", "https://host", None),
    (f"http://LOCALHOST:80/s/{ID}", "http://localhost", None),
    (f"https://host:8443/s/{ID}", "https://host:8443", None),
]
BAD = [
    (f"http://host/s/{ID}#sha256={PIN}", InsecureTransport),
    (f"http://127.0.0.1.evil.example/s/{ID}", InsecureTransport),
    (f"http://localhost.evil.example/s/{ID}", InsecureTransport),
    (f"ftp://host/s/{ID}", InsecureTransport),
    ("file:///etc/passwd", InsecureTransport),
    ("", InsecureTransport),
    (f"https://user:secret@host/s/{ID}", LinkError),
    (f"https://host/s/{ID}?x=1", LinkError),
    (f"https://host/s/{ID[:-1]}", LinkError),
    (f"https://host/s/{ID.upper()}", LinkError),
    (f"https://host/s/../s/{ID}", LinkError),
    (f"https://host/s/{ID}#sha256={PIN[:-1]}", LinkError),
    (f"https://host/s/{ID}#md5={PIN}", LinkError),
    (f"https://host:port/s/{ID}", LinkError),
    ("https://[/", LinkError),
    (None, LinkError),
]


@pytest.mark.parametrize(("text", "origin", "digest"), GOOD)
def test_links_are_read(text: str, origin: str, digest: str | None) -> None:
    assert SurveyLink.parse(text) == SurveyLink(origin, ID, digest)


def test_a_personal_link_has_a_code_that_is_never_shown() -> None:
    code = "7Q2M-0000-ABCD-WXYZ"
    link = SurveyLink.parse(f"https://host/s/{ID}#sha256={PIN}&invite={code}")
    assert (link.digest, link.invite) == (f"sha256:{PIN}", code)
    assert code not in repr(link)
    assert code not in link.document_url + link.chain_url
    for tail in (
        "&invite=",
        "&invite=a b",
        "&invite=" + "A" * 20,
        f"&invite={code}&x=1",
        f"&token={code}",
    ):
        error = refusal(LinkError, SurveyLink.parse, f"https://host/s/{ID}#sha256={PIN}{tail}")
        assert code not in str(error)


CODE = "7Q2M-0000-ABCD-WXYZ"
TAILS: dict[str, tuple[bool, str | None]] = {
    "&id=abc123": (True, None),
    "&id=a.B_~-9": (True, None),
    "&id=...": (True, None),
    "&id=" + "7" * 128: (True, None),
    f"&invite={CODE}&id=x": (True, CODE),
    "&id=" + "7" * 129: (False, None),
    "&id=": (False, None),
    "&id=.": (False, None),
    "&id=..": (False, None),
    "&id=%2e": (False, None),
    "&id=a/b": (False, None),
    "&id=a b": (False, None),
    "&id=a{id}": (False, None),
    "&id=\u0661": (False, None),
    "&id=a&id=b": (False, None),
    "&id=a&x=b": (False, None),
    f"&id=x&invite={CODE}": (False, None),
    "&ID=a": (False, None),
}
"""What may follow a pin: whether the link is read, and the invite code in it. The browser SDK has the same."""


@pytest.mark.parametrize("tail", TAILS)
def test_an_id_of_a_panel_is_ignored_and_anything_else_refused(tail: str) -> None:
    is_read, invite = TAILS[tail]
    if is_read:
        link = SurveyLink.parse(f"https://host/s/{ID}#sha256={PIN}{tail}")
        assert link == SurveyLink("https://host", ID, f"sha256:{PIN}", invite)
    else:
        refusal(LinkError, SurveyLink.parse, f"https://host/s/{ID}#sha256={PIN}{tail}")
    refusal(LinkError, SurveyLink.parse, f"https://host/s/{ID}#{tail[1:]}")  # nothing is pinned


@pytest.mark.parametrize(("text", "error"), BAD, ids=range(len(BAD)))
def test_other_links_are_refused(text: str, error: type[LinkError]) -> None:
    assert type(refusal(LinkError, SurveyLink.parse, text)) is error


NO_ADDRESS = [
    "",
    "hello",
    "host/s/1",
    f"/s/{ID}#sha256={PIN}",
    "https:host",
    f"sha256={PIN}",
    "mailto:me",
    "https://",
]


@pytest.mark.parametrize("text", NO_ADDRESS)
def test_a_malformed_address_is_refused_with_the_format_of_a_link(text: str) -> None:
    """The class is InsecureTransport, as in the browser, and the message states the format of a link."""
    error = refusal(InsecureTransport, SurveyLink.parse, text)
    assert f"{error}" == (
        "link: a survey link looks like https://host/s/ID#sha256=…: copy all of it"
    )
    with pytest.raises(InsecureTransport) as caught:
        require_secure(text, "relay")
    assert (caught.value.field, "survey link" in caught.value.detail) == ("relay", False)
    assert "https://" in caught.value.detail


def test_an_address_without_tls_is_refused_with_the_scheme_to_use() -> None:
    error = refusal(InsecureTransport, SurveyLink.parse, f"http://host/s/{ID}")
    assert "use https://" in error.detail


def test_a_refused_collect_url_names_the_rule() -> None:
    origin = "https://collect.example"
    error = refusal(DocumentRejected, require_collect, "https://other.example/in", origin)
    assert (error.reason, error.field) == ("host", "collect_url")
    with pytest.raises(InsecureTransport, match="on this machine"):
        require_collect("https://127.0.0.1/in", origin, ("127.0.0.1",))


NOT_HOSTS = [None, 5, "", "a b", " ", "a/b", "Host", "host:443", "https://host", "a\u200bb", "["]


@pytest.mark.parametrize("name", NOT_HOSTS, ids=repr)
def test_hosts_are_written_as_in_an_address(name: object) -> None:
    assert is_host("collect.example")
    assert not is_host(name)
