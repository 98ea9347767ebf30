# SPDX-License-Identifier: Apache-2.0
"""Small wheels, and an index that notes what it is asked for, for tests of installations."""

import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nProvides-Extra: mail\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def write_wheel(folder: Path, name: str, version: str, *requirements: str) -> Path:
    """Write a wheel that contains one module and has these requirements, and return its path."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": METADATA.format(name=name, version=version)
        + "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements),
        f"{info}/WHEEL": WHEEL,
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    made = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return made


class Index(ThreadingHTTPServer):
    """A package index on the loopback address, and the names that it was asked for.

    It has an empty wheel of every Python package that is not ours, in three versions, and nothing
    for npm.
    """

    versions = ("1.15", "27.99", "9999")  # highspy and gunicorn have upper limits

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.folder, self.asked = folder, set[str]()
        self.url = f"http://127.0.0.1:{self.server_port}/"


class _Answer(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        name, _, file = self.path.strip("/").partition("/")
        if file:
            data = write_wheel(self.server.folder, *file.split("-")[:2]).read_bytes()
        else:
            name = unquote(name)
            self.server.asked.add(name)
            versions = () if "frankly" in name else self.server.versions
            module = name.replace("-", "_")
            files = [f"{module}-{version}-py3-none-any.whl" for version in versions]
            data = "".join(f'<a href="{file}">{file}</a>' for file in files).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if file else "text/html")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        """Write nothing."""
