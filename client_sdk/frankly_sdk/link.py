# SPDX-License-Identifier: Apache-2.0
"""Survey links: ``https://host/s/ID#sha256=DIGEST``.

The fragment pins the exact document (acceptance step 8).
"""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from frankly_protocol.errors import DocumentRejected

from frankly_sdk.errors import InsecureTransport, LinkError

_PATH = re.compile(r"/s/([0-9a-f]{32})", re.ASCII)
# Default ports, which an origin omits.
_PORTS = {"https": 443, "http": 80}
# A link may name a source, and a personal one has an invite code (docs/protocol.md §10). A panel's id of
# a person is for the hosted page alone, which puts it into an address: there, . and .. would be other folders.
_PIN = re.compile(
    r"sha256=([0-9a-f]{64})(?:&source=([a-z0-9][a-z0-9_-]{0,63}))?(?:&invite=([0-9A-Za-z-]{16,19}))?"
    r"(?:&id=(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,128})?",
    re.ASCII,
)
_FORM = "a survey link looks like https://host/s/ID#sha256=…: copy all of it"


@dataclass(frozen=True, slots=True)
class SurveyLink:
    """A parsed survey link.

    origin : scheme, host, and the port unless it is the default.
    survey : 32 hex digits.
    digest : ``sha256:…``, or None if the link pins no document.
    source : the respondent's source, such as a panel, or None. invite : invite code of a personal link,
        or None.
    """

    origin: str
    survey: str
    digest: str | None
    invite: str | None = field(default=None, repr=False)
    source: str | None = None

    @classmethod
    def parse(cls, text: str) -> "SurveyLink":
        """Read a link.

        Raises LinkError, or InsecureTransport for an http:// address of another machine.
        """
        address = _split(text, "link")
        require_secure(text)
        path = _PATH.fullmatch(address.path)
        pin = _PIN.fullmatch(address.fragment)
        if path is None or address.query or (address.fragment and pin is None):
            raise LinkError(_FORM)
        return cls(
            _origin(address),
            path.group(1),
            f"sha256:{pin.group(1)}" if pin else None,
            pin and pin.group(3),
            pin and pin.group(2),
        )

    @property
    def chain_url(self) -> str:
        """URL of the chain of all versions of the keys."""
        return f"{self.origin}/v1/keys/chain"

    @property
    def document_url(self) -> str:
        """URL of the survey document; a pinned one is requested by its digest."""
        url = f"{self.origin}/v1/surveys/{self.survey}/document"
        return f"{url}?digest={self.digest}" if self.digest else url


def require_secure(url: str, field: str = "link") -> None:
    """Raise InsecureTransport unless `url` is https, or http to this machine itself.

    Raises LinkError if `url` is malformed or contains a user name.
    """
    address = _split(url, field)
    if address.username is not None or address.password is not None:
        raise LinkError(
            "an address must not contain a user name, which could tell devices apart", field=field
        )
    if address.scheme == "https" and address.hostname:
        return
    if address.scheme == "http" and address.hostname and _is_loopback(address.hostname):
        return
    if not address.netloc:  # no host: an example of a link helps more than a list of schemes
        raise InsecureTransport(_form(field), field)
    raise InsecureTransport(
        "use https://; http:// is accepted only for this machine, such as 127.0.0.1 or localhost",
        field,
    )


def require_collect(url: str, origin: str, allowed: Collection[str] = ()) -> None:
    """Raise unless `url` is on the host of the link, or on a host in `allowed`.

    Without this check, a document could make devices post to any service that they can reach. A
    loopback address is accepted only if the link is loopback too.

    Raises InsecureTransport, LinkError, or DocumentRejected("host").
    """
    require_secure(url, "collect_url")
    host, link_host = str(_split(url, "collect_url").hostname), str(_split(origin, "link").hostname)
    if _is_loopback(host) and not _is_loopback(link_host):
        raise InsecureTransport(
            "a survey from another host must not collect reports on this machine", "collect_url"
        )
    # All loopback names, such as 127.0.0.1 and localhost, are the same host.
    if host == link_host or host in allowed or (_is_loopback(host) and _is_loopback(link_host)):
        return
    hosts = f"reports would go to {host}, not to the link's {link_host}"
    raise DocumentRejected(
        "host", f"{hosts}; an app can allow this in Policy(collect_hosts=…)", "collect_url"
    )


def is_host(name: object) -> bool:
    """Return True for a host name in the form of a URL: lower case, no scheme, no port."""
    if not isinstance(name, str) or not name.isprintable() or " " in name:
        return False
    try:
        return _split(f"https://{name}/", "link").hostname == name
    except LinkError:
        return False


def _origin(address: SplitResult) -> str:
    """Return scheme, host and port in a normal form, because the store uses them as a key."""
    host = address.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = "" if address.port in (None, _PORTS.get(address.scheme)) else f":{address.port}"
    return f"{address.scheme}://{host}{port}"


def _form(field: str) -> str:
    return (
        _FORM
        if field == "link"
        else "this is not an address: an address begins with https:// and a host name"
    )


def _split(url: str, field: str) -> SplitResult:
    try:
        if not isinstance(url, str):
            raise ValueError
        address = urlsplit(url)
        _ = address.port  # raises if the port is not a number
        if set(address.netloc) & set("<>^|"):  # no host name has these; browsers refuse them
            raise ValueError
    except ValueError:
        raise LinkError(_form(field), field=field) from None
    return address


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
