# SPDX-License-Identifier: Apache-2.0
"""Survey links: ``https://host/s/ID#sha256=DIGEST``. The fragment pins the exact document (acceptance step 8)."""

import ipaddress
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from frankly_protocol.errors import DocumentRejected

from frankly_sdk.errors import InsecureTransport, LinkError

_PATH = re.compile(r"/s/([0-9a-f]{32})", re.ASCII)
_PIN = re.compile(r"sha256=([0-9a-f]{64})", re.ASCII)
_FORM = "a survey link looks like https://host/s/ID#sha256=…: copy it whole"


@dataclass(frozen=True, slots=True)
class SurveyLink:
    """origin : scheme and host. survey : 32 hex digits. digest : ``sha256:…``, None if the link pins nothing."""

    origin: str
    survey: str
    digest: str | None

    @classmethod
    def parse(cls, text: str) -> "SurveyLink":
        """Read a link; raises LinkError, or InsecureTransport for http:// to anything but this machine."""
        parts = _split(text, "link")
        require_secure(text)
        path = _PATH.fullmatch(parts.path)
        pin = _PIN.fullmatch(parts.fragment)
        if path is None or parts.query or (parts.fragment and pin is None):
            raise LinkError(_FORM)
        digest = f"sha256:{pin.group(1)}" if pin else None
        return cls(f"{parts.scheme}://{parts.netloc}", path.group(1), digest)

    @property
    def chain_url(self) -> str:
        """Where all versions of the keys are."""
        return f"{self.origin}/v1/keys/chain"

    @property
    def document_url(self) -> str:
        """Where the survey document is; a pinned one is asked for by its digest."""
        url = f"{self.origin}/v1/surveys/{self.survey}/document"
        return f"{url}?digest={self.digest}" if self.digest else url


def require_secure(url: str, field: str = "link") -> None:
    """Raise InsecureTransport unless `url` is https, or http to this machine itself; LinkError if it names a user."""
    parts = _split(url, field)
    if parts.username is not None or parts.password is not None:
        raise LinkError("an address with a user name in it could tell devices apart", field=field)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname and _is_loopback(parts.hostname):
        return
    if not parts.netloc:  # no address at all: what it lacks helps more than what would be allowed
        raise InsecureTransport(_form(field), field)
    raise InsecureTransport("only https:// is used; http:// works for 127.0.0.1, ::1 and localhost alone", field)


def require_collect(url: str, origin: str, allowed: Collection[str] = ()) -> None:
    """Raise unless reports may go to `url`: to the host of the link, or to one that the app allows by name.

    Otherwise a document could send what a device posts to any service that the device reaches. An address of this
    machine itself needs a link to this machine; then every one of its names is the same host.

    Raises InsecureTransport, LinkError, or DocumentRejected("host").
    """
    require_secure(url, "collect_url")
    host, own = str(_split(url, "collect_url").hostname), str(_split(origin, "link").hostname)
    if _is_loopback(host) and not _is_loopback(own):
        raise InsecureTransport("reports for a survey on the network do not go to this machine itself", "collect_url")
    if host == own or host in allowed or (_is_loopback(host) and _is_loopback(own)):
        return
    words = f"reports would go to {host}, the link names {own}: an app allows that by Policy(collect_hosts=…)"
    raise DocumentRejected("host", words, "collect_url")


def is_host(name: object) -> bool:
    """Tell whether this is the name of a host as an address has it: lower case, no scheme, no port."""
    if not isinstance(name, str) or not name.isprintable() or " " in name:
        return False
    try:
        return _split(f"https://{name}/", "link").hostname == name
    except LinkError:
        return False


def _form(field: str) -> str:
    return _FORM if field == "link" else "this is no address: it begins with https:// and the name of a host"


def _split(url: str, field: str) -> SplitResult:
    try:
        if not isinstance(url, str):
            raise ValueError
        parts = urlsplit(url)
        _ = parts.port  # raises for a port that is no number
        if set(parts.netloc) & set("<>^|"):  # no host has them; browsers refuse such an address
            raise ValueError
    except ValueError:
        raise LinkError(_form(field), field=field) from None
    return parts


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
