# SPDX-License-Identifier: Apache-2.0
"""Documentation site, served locally, parsed, and searched for broken links."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Log nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on the loopback address; yield its URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Page(HTMLParser):
    """Ids and links of a page, and the URLs that it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if "id" in attributes:
            self.ids.add(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        elif tag == "link":
            self.fetched.append(attributes["href"])
        elif "src" in attributes:
            self.fetched.append(attributes["src"])


def parsed(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def broken_links(folder: Path) -> list[str]:
    """Return the broken links within the site, including broken anchors."""
    pages = {file: parsed(file) for file in folder.rglob("*.html")}
    wrong = []
    for file, page in pages.items():
        for link in [*page.links, *page.fetched]:
            if urlsplit(link).scheme:
                continue
            place, anchor = urldefrag(link)
            path = unquote(urlsplit(place).path)
            target = (file.parent / path).resolve() if path else file
            to_page = target.suffix == ".html" and target.is_file()
            if not target.is_file() or (
                anchor and to_page and unquote(anchor) not in pages[target].ids
            ):
                wrong.append(f"{file.name}: {link}")
    return wrong
