# SPDX-License-Identifier: Apache-2.0
"""Follow docs/first_survey.md, or run a command, in a Debian system that has only python3 and pip.

As root: python3 -m tools.bare_root [--suite NAME] [--base FOLDER] [--without-test] [--run COMMAND]
[--bind FOLDER]... [--copy FILE]... [--keep]

debootstrap creates a root file system (or --base copies an existing one), the last commit is cloned
into it, and tools/follow.py or the command runs there in separate mount and process namespaces. The machine's name
servers, certificates and pip settings are copied; --bind and --copy add files that these settings
need (a registry on disk, apt's sources).
"""

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("python3", "python3-pip", "ca-certificates")
SETTINGS: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "~/.config/pip/pip.conf")
NEEDS_TEST: Final = ("run.py test", "sphinx")
"""Lines that --without-test skips: the tests, and commands that only the test packages install."""
_PASSED_ON: Final = re.compile(
    r"(?i)PIP_\w+|SSL_CERT_(FILE|DIR)|(REQUESTS|CURL)_CA_BUNDLE|(https?|no)_proxy"
)


def empty(base: Path, suite: str) -> None:
    """Create a minimal Debian with python3 and pip. Raises subprocess.CalledProcessError.

    suite : name of the release; bookworm is Debian 12, trixie Debian 13.
    """
    command = [
        "debootstrap",
        "--variant=minbase",
        f"--include={','.join(PACKAGES)}",
        suite,
        str(base),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603


def furnish(root: Path, copies: Sequence[str]) -> None:
    """Copy the machine's settings and certificates, and the last commit, into a root."""
    named = [value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)]
    for place in [*SETTINGS, *copies, *named]:
        source = Path(place).expanduser()
        if source.is_absolute() and source.is_file():
            target = root / source.relative_to("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    no_services = root / "usr/sbin/policy-rc.d"
    no_services.write_text("#!/bin/sh\nexit 101\n")
    no_services.chmod(0o755)
    subprocess.run(  # noqa: S603
        ["git", "clone", "--quiet", "--no-hardlinks", ROOT, root / "srv/frankly"],  # noqa: S607
        check=True,  # noqa: RUF100, S607
    )  # noqa: RUF100, S603, S607


def script(root: Path, binds: Sequence[str], command: str) -> str:
    """Return the shell lines that mount file systems in a root and run a command in its checkout."""
    home = Path("~").expanduser()
    passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    fixed = {"HOME": str(home), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    env = [f"{name}={value}" for name, value in {**passed_on, **fixed}.items()]
    command = f"cd /srv/frankly && {command}"
    return "\n".join(
        [
            "set -e",
            *_mounts(root, binds),
            shlex.join(["exec", "chroot", str(root), "env", "-i", *env, "sh", "-c", command]),
        ]
    )


def _mounts(root: Path, binds: Sequence[str]) -> Iterator[str]:
    yield shlex.join(["mount", "-t", "proc", "proc", f"{root}/proc"])
    yield shlex.join(["mount", "--rbind", "/dev", f"{root}/dev"])
    for place in binds:
        inside = f"{root}/{Path(place).resolve().relative_to('/')}"
        yield shlex.join(["mkdir", "-p", inside])
        yield shlex.join(["mount", "--bind", place, inside])
        yield shlex.join(["mount", "-o", "remount,ro,bind", inside])


def main(arguments: Sequence[str] | None = None) -> None:
    """Create the root, follow the page in it, remove the root; exit with the run's exit code."""
    parser = argparse.ArgumentParser(
        description="Follow docs/first_survey.md, or run a command, in an empty Debian."
    )
    parser.add_argument(
        "--suite", default="bookworm", help="Debian's release (default: bookworm, Debian 12)"
    )
    parser.add_argument(
        "--run", metavar="COMMAND", help="run this in the checkout instead of following the page"
    )
    parser.add_argument("--base", type=Path, help="copy this root instead of creating one")
    parser.add_argument(
        "--without-test", action="store_true", help=f"skip lines with: {', '.join(NEEDS_TEST)}"
    )
    parser.add_argument(
        "--bind", action="append", default=[], metavar="FOLDER", help="mount FOLDER read-only"
    )
    parser.add_argument("--copy", action="append", default=[], metavar="FILE", help="copy FILE")
    parser.add_argument("--port", default="8000", help="for the server, if 8000 is taken")
    parser.add_argument("--keep", action="store_true", help="do not remove the root")
    options = parser.parse_args(arguments)
    if os.geteuid() != 0:
        parser.error("this needs the rights of root: sudo python3 -m tools.bare_root")
    scratch = Path(tempfile.mkdtemp(prefix="bare-"))
    root = scratch / "root"
    try:
        if options.base:
            subprocess.run(["cp", "--archive", options.base, root], check=True)  # noqa: S603, S607
        else:
            empty(root, options.suite)
        furnish(root, options.copy)
        without = [f"--without={text}" for text in NEEDS_TEST] if options.without_test else []
        follow = shlex.join([*without, f"--port={options.port}"])
        command = options.run or f"exec python3 -m tools.follow docs/first_survey.md {follow}"
        lines = script(root, options.bind, command)
        # with namespaces, mounts and remaining processes end with the run, even after a failure
        isolated = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", lines]
        code = subprocess.run(isolated, check=False, stdin=subprocess.DEVNULL).returncode  # noqa: S603
    finally:
        if options.keep:
            sys.stderr.write(f"kept: {root}\n")
        else:
            subprocess.run(["rm", "-rf", "--one-file-system", scratch], check=True)  # noqa: S603, S607
    sys.exit(code)


if __name__ == "__main__":
    main()
