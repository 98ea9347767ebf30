# SPDX-License-Identifier: Apache-2.0
"""python -m examples.plain_page [port]: serve the example page and the SDK, on this machine only.

Then open http://127.0.0.1:PORT/?link= followed by the survey's link, percent-encoded.
"""

import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_SDK = _HERE.parents[1] / "client_sdk" / "browser" / "src"


class Handler(SimpleHTTPRequestHandler):
    """Serves the page's folder, and the SDK's sources under /sdk/; 404 for anything else."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, directory=str(_HERE), **options)

    def translate_path(self, path: str) -> str:
        """Return the file for an address."""
        name = Path(path.partition("?")[0])
        folder = _SDK if name.parts[1:2] == ("sdk",) else _HERE
        return str(folder / (name.name or "index.html"))

    def end_headers(self) -> None:
        """Send a strict policy; a real page would limit connect-src to the survey's server."""
        policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' http: https:"
        self.send_header("Content-Security-Policy", policy)
        super().end_headers()

    def log_message(self, *_arguments: Any) -> None:
        """Log nothing."""


def serve(port: int = 0) -> ThreadingHTTPServer:
    """Return a listening server; the caller runs it."""
    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    server = serve(int(sys.argv[1]) if len(sys.argv) > 1 else 8080)
    print(f"http://127.0.0.1:{server.server_port}/?link=…")
    server.serve_forever()
