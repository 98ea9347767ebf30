# SPDX-License-Identifier: Apache-2.0
"""The part of curl that pages use, for machines without it: python curl.py [OPTION]... URL.

It refuses every option that it lacks, so that a page cannot rely on what was never run.
"""

import argparse
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener


def request(arguments: list[str]) -> Request:
    """Return the request of a command line. Exits for options other than those that pages use."""
    parser = argparse.ArgumentParser(prog="curl", allow_abbrev=False)
    parser.add_argument("-s", action="store_true")
    parser.add_argument("-S", action="store_true")
    parser.add_argument("-X", dest="method")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", "--data-binary", dest="data")
    parser.add_argument("url")
    given = parser.parse_args(arguments)
    data = None if given.data is None else given.data.encode()
    if given.data is not None and given.data.startswith("@"):
        data = Path(given.data[1:]).read_bytes()
    headers = dict(header.split(": ", 1) for header in given.headers)
    return Request(given.url, data, headers, method=given.method)


def main() -> None:
    """Print the body of the answer, also of a refusal."""
    try:
        answer = build_opener(ProxyHandler({})).open(request(sys.argv[1:]))
    except HTTPError as refused:
        answer = refused
    with answer:
        sys.stdout.buffer.write(answer.read())


if __name__ == "__main__":
    main()
