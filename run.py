#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Install and run Frankly on a machine that has only python3 and pip: `python3 run.py demo`.

Every command first installs what it needs: system packages with apt, Python packages from hash
locks into .venv. Afterwards the server's command is .venv/bin/frankly.
"""

import argparse
import ast
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE, STDOUT

if sys.version_info < (3, 11):  # noqa: UP036  an older Python may run this file
    sys.exit("Frankly needs Python 3.11 or newer")

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
SCRIPTS = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = SCRIPTS / "python"
BROWSER = ROOT / "client_sdk" / "browser"
STACKS = ROOT / "client_sdk" / "examples"
OWN = ("shared", "design", "client_sdk", "analyst", "server")


def _has(*paths: str) -> bool:
    return any(match for path in paths for match in Path("/").glob(path.lstrip("/")))


# Debian package -> True if its files are installed; the headers must match this interpreter.
BUILD: dict[str, Callable[[], bool]] = {
    "python3-pip": lambda: importlib.util.find_spec("pip") is not None,
    "python3-dev": lambda: _has(sysconfig.get_path("include") + "/Python.h"),
    "gcc": lambda: shutil.which("cc") is not None,
    "libc6-dev": lambda: _has("/usr/include/stdio.h"),
    "libcdd-dev": lambda: _has("/usr/include/cdd*/setoper.h", "/usr/local/include/cdd*/setoper.h"),
}
TEST: dict[str, Callable[[], bool]] = BUILD | {
    "chromium-headless-shell": lambda: shutil.which("chromium-headless-shell") is not None,
    "strace": lambda: shutil.which("strace") is not None,
    "wrk": lambda: shutil.which("wrk") is not None,
    "postgresql": lambda: (
        "FRANKLY_PG_BIN" in os.environ or _has("/usr/lib/postgresql/*/bin/initdb")
    ),
}
FULL: dict[str, Callable[[], bool]] = TEST | {
    "caddy": lambda: shutil.which("caddy") is not None,
    "chromium": lambda: shutil.which("chromium") is not None,
    "curl": lambda: shutil.which("curl") is not None,
    "debootstrap": lambda: shutil.which("debootstrap") is not None,
    "default-jre-headless": lambda: shutil.which("java") is not None,
    "docker-compose": lambda: shutil.which("docker-compose") is not None,
    "firefox-esr": lambda: shutil.which("firefox-esr") is not None,
    "golang-go": lambda: shutil.which("go") is not None,
    "npm": lambda: shutil.which("npm") is not None,
    "r-base-core": lambda: shutil.which("Rscript") is not None,
    "r-cran-broom": lambda: _has("/usr/lib/R/site-library/broom/DESCRIPTION"),
    "r-cran-httr2": lambda: _has("/usr/lib/R/site-library/httr2/DESCRIPTION"),
    "r-cran-jsonlite": lambda: _has("/usr/lib/R/site-library/jsonlite/DESCRIPTION"),
    "r-cran-knitr": lambda: _has("/usr/lib/R/site-library/knitr/DESCRIPTION"),
    "r-cran-mass": lambda: _has("/usr/lib/R/library/MASS/DESCRIPTION"),
    "r-cran-survey": lambda: _has("/usr/lib/R/site-library/survey/DESCRIPTION"),
    "r-cran-testthat": lambda: _has("/usr/lib/R/site-library/testthat/DESCRIPTION"),
    "systemd": lambda: shutil.which("systemd-analyze") is not None,
}
CHECK: dict[str, Callable[[], bool]] = BUILD | {"npm": FULL["npm"]}
BENCH: dict[str, Callable[[], bool]] = TEST | {"chromium": FULL["chromium"]}
PACKAGES = {"demo": BUILD, "check": CHECK, "test": TEST, "bench": BENCH, "full": FULL}
NEEDED_BY: dict[str, tuple[str, ...]] = {
    "chromium-headless-shell": ("tests/bench", "tests/browser", "tests/deploy", "tests/docs"),
    "golang-go": ("tests/verifier",),
    "strace": ("tests/faults",),
    "wrk": ("tests/bench",),
    "npm": ("tests/browser/stacks",),
    "postgresql": (
        "tests/bench",
        "tests/contract",
        "tests/deploy",
        "tests/docs",
        "tests/faults",
        "tests/frankly_server/accounts",
        "tests/frankly_server/analysis",
        "tests/frankly_server/cli",
        "tests/frankly_server/intake",
        "tests/frankly_server/keys",
        "tests/frankly_server/log",
        "tests/frankly_server/test_clock_jumps.py",
        "tests/frankly_server/test_services.py",
        "tests/frankly_server/scale",
        "tests/frankly_server/store",
        "tests/frankly_server/surveys",
        "tests/frankly_server/web",
        "tests/simulation",
    ),
    "caddy": ("tests/deploy",),
    "chromium": ("tests/browser", "tests/docs"),
    "curl": ("tests/docs",),
    "debootstrap": ("tests/deploy",),
    "default-jre-headless": ("tests/frankly_server/scale",),
    "docker-compose": ("tests/deploy", "tests/docs"),
    "firefox-esr": ("tests/browser",),
    "r-base-core": ("tests/docs", "tests/frankly_analyst/models", "tests/frankly_analyst_r"),
    "r-cran-broom": ("tests/frankly_analyst_r",),
    "r-cran-httr2": ("tests/docs", "tests/frankly_analyst_r"),
    "r-cran-jsonlite": ("tests/docs", "tests/frankly_analyst_r"),
    "r-cran-knitr": ("tests/frankly_analyst_r",),
    "r-cran-mass": ("tests/frankly_analyst/models",),
    "r-cran-survey": ("tests/docs", "tests/frankly_analyst/models", "tests/frankly_analyst_r"),
    "r-cran-testthat": ("tests/frankly_analyst_r",),
    "systemd": ("tests/deploy",),
}
"""Debian package -> folders of the tests that need it; all tests need the packages not listed."""
PURE = ("tests/frankly_protocol", "tests/frankly_sdk", "tests/frankly_design")
"""Tests that need no server, database or browser."""
INCOMPLETE = """\
The packages in .venv do not fit together. Remove .venv and run this again. If that fails too,
requirements/{lock}.txt lacks a dependency or has the wrong version of one: please report it.
requirements/refresh.sh writes the locks again."""
LINT: dict[str, list[str]] = {
    "ruff check": ["ruff", "check", "."],
    "ruff format": ["ruff", "format", "--check", "."],
    "import contracts": ["lint-imports"],
}


def step(words: str, *commands: Sequence[str], hint: str = "") -> None:
    """Run commands with one line of progress on stderr; on failure print output, hint and exit 1."""
    print(f"  {words} … ", end="", flush=True, file=sys.stderr)
    start = time.monotonic()
    for command in commands:
        result = subprocess.run(
            command, cwd=ROOT, check=False, stdout=PIPE, stderr=STDOUT, text=True
        )
        if result.returncode:
            print("failed", file=sys.stderr)
            sys.exit(f"{result.stdout[-4000:]}\nfailed: {' '.join(command)}\n{hint}".rstrip())
    print(f"{time.monotonic() - start:.1f} s", flush=True, file=sys.stderr)


def _as_root(otherwise: str) -> list[str]:
    if os.geteuid() == 0:
        return []
    sudo = shutil.which("sudo")
    if (
        sudo is None
        or subprocess.run([sudo, "-n", "true"], check=False, capture_output=True).returncode
    ):
        sys.exit(otherwise)
    return [sudo, "-n"]


def system_packages(needs: dict[str, Callable[[], bool]]) -> None:
    """Install the missing Debian packages; without root rights, print the command and exit 1."""
    missing = [name for name, is_installed in needs.items() if not is_installed()]
    if not missing:
        return
    install = ["apt-get", "install", "-y", "--no-install-recommends", *missing]
    by_hand = f"please install as root: {' '.join(install)}"
    if shutil.which("apt-get") is None:
        sys.exit(f"{by_hand} (or the equivalent packages of this system, which is not Debian)")
    apt = [*_as_root(by_hand), "env", "DEBIAN_FRONTEND=noninteractive"]
    step(f"system packages: {' '.join(missing)}", [*apt, "apt-get", "update"], [*apt, *install])
    if still := [name for name in missing if not needs[name]()]:
        sys.exit(
            f"{sys.executable} does not find {' '.join(still)}: run this with /usr/bin/python3"
        )


def environment(lock: str) -> None:
    """Install the lock file `demo`, `test` or `full` into .venv, unless its stamp file exists.

    Exits with status 1 if `pip check` finds that a package lacks a dependency. It ignores the
    dependencies of extras; tests/deploy/test_locks.py follows those.
    """
    locks = ["build.txt", f"{lock}.txt"]
    inputs = [ROOT / "requirements" / name for name in locks] + [
        ROOT / name / "pyproject.toml" for name in OWN
    ]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in inputs)).hexdigest()
    stamp = VENV / f"installed-{lock}-{sys.implementation.cache_tag}-{digest[:16]}"
    if stamp.exists():
        return
    # The environment has no pip, because plain Debian lacks python3-venv: this Python's pip
    # installs into it.
    step("environment .venv", [sys.executable, "-m", "venv", "--without-pip", str(VENV)])
    pip = [sys.executable, "-m", "pip", "--python", str(PYTHON), "--disable-pip-version-check"]
    install = [
        *pip,
        "install",
        "--no-input",
        "--root-user-action=ignore",
        "--progress-bar=off",
        "--no-compile",
    ]  # Python compiles modules on import
    # Builds use the packages of the build lock in .venv, so nothing is fetched without a hash.
    # The locks list every dependency, hence --no-deps: otherwise pip would choose a newer release
    # of a package that another one requires with an extra, and then refuse it because its hash is
    # not in the lock.
    locked = [*install, "--no-build-isolation", "--no-deps", "--require-hashes", "-r"]
    step("build tools", [*locked, "requirements/build.txt"])
    step("Python packages (about half a minute)", [*locked, f"requirements/{lock}.txt"])
    editable = [option for name in OWN for option in ("--editable", f"./{name}")]
    step("Frankly itself", [*install, "--no-build-isolation", "--no-deps", *editable])
    # As pip resolves nothing, it does not notice that a lock lacks a dependency.
    step("check of dependencies", [*pip, "check"], hint=INCOMPLETE.format(lock=lock))
    stamp.touch()


def paths_in(arguments: Sequence[str]) -> list[Path]:
    """Return the files and folders that pytest's arguments name; the checkout if they name none."""
    paths = [Path(argument.partition("::")[0]) for argument in arguments if argument[:1] != "-"]
    return [(ROOT / path).resolve() for path in paths if (ROOT / path).exists()] or [ROOT]


def packages_of(lock: str, arguments: Sequence[str]) -> dict[str, Callable[[], bool]]:
    """Return a lock's Debian packages that the tests in `arguments` need (all tests by default)."""
    wanted = paths_in(arguments)

    def is_needed(name: str) -> bool:
        folders = [ROOT / folder for folder in NEEDED_BY.get(name, (".",))]
        return any(
            one.is_relative_to(folder) or folder.is_relative_to(one)
            for one in wanted
            for folder in folders
        )

    return {name: here for name, here in PACKAGES[lock].items() if is_needed(name)}


def setup(what: str, arguments: Sequence[str] = ()) -> None:
    """Install everything for the demo or benches, or for the tests named in pytest's arguments."""
    needed = packages_of(what, arguments)
    system_packages(needed)
    if "npm" in needed:
        node_packages(STACKS)
    environment("test" if what == "bench" else what)


def become(*arguments: str) -> None:
    """Restart this script under the Python of .venv, in the same process."""
    sys.stdout.flush()
    os.chdir(ROOT)
    os.execv(PYTHON, [str(PYTHON), *arguments])


def node_packages(folder: Path) -> None:
    """Install a folder's Node packages at the versions in its lock file."""
    lock, stamp = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    if not stamp.exists() or stamp.stat().st_mtime < lock.stat().st_mtime:
        step(
            f"Node packages of {folder.relative_to(ROOT)}",
            ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", f"--prefix={folder}"],
        )
        stamp.touch()


def run_all(commands: dict[str, list[str]]) -> None:
    """Run every command, print the output of those that fail; exit with status 1 if any failed."""
    failed = []
    for name, (program, *arguments) in commands.items():
        print(f"  {name} … ", end="", flush=True, file=sys.stderr)
        start = time.monotonic()
        done = subprocess.run(
            [str(SCRIPTS / program) if program != "npm" else "npm", *arguments],
            cwd=ROOT,
            check=False,
            stdout=PIPE,
            stderr=STDOUT,
            text=True,
        )
        print(
            f"{'failed' if done.returncode else 'ok'}, {time.monotonic() - start:.1f} s",
            file=sys.stderr,
        )
        if done.returncode:
            failed.append(name)
            print(done.stdout)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


def quick() -> None:
    """Run lint, contracts, types and the pure tests: no apt, no database, no browser."""
    environment("test")
    workers = str(min(os.cpu_count() or 1, 4))
    pure = ["python", "-m", "pytest", "-q", "-n", workers, "--dist", "worksteal"]
    marked = ["-m", "not slow and not database and not browser"]
    run_all(LINT | {"mypy": ["mypy"], "pure tests": [*pure, *marked, *PURE]})


def check() -> None:
    """Run all static checks: lint, import contracts, types of Python and of the npm packages."""
    system_packages(CHECK)
    environment("test")
    projects = {"tsc": BROWSER / "jsconfig.json", "tsc of the examples": STACKS / "tsconfig.json"}
    for project in projects.values():
        node_packages(project.parent)
    types = {
        name: [
            "npm",
            "exec",
            f"--prefix={project.parent}",
            "--offline",
            "--",
            "tsc",
            "-p",
            str(project),
        ]
        for name, project in projects.items()
    }
    run_all(LINT | {"mypy": ["mypy"]} | types)


def list_benches(names: Sequence[str]) -> None:
    """Print the first line of each bench's docstring."""
    for name in names:
        docstring = (
            ast.get_docstring(
                ast.parse((ROOT / "bench" / f"{name}.py").read_text(encoding="utf-8"))
            )
            or ""
        )
        print(f"{name:>14}  {docstring.splitlines()[0]}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and run the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(
        dest="verb", required=True, metavar="setup|demo|quick|check|test|bench"
    )
    verbs.add_parser("setup", help="only install what the demo needs")
    verbs.add_parser(
        "demo", help="example surveys, end to end, on real answers; [affairs|workplace|multi]"
    )
    verbs.add_parser(
        "quick", help="lint, types and the pure tests: no apt, no database, no browser"
    )
    verbs.add_parser("check", help="all static checks: lint, import contracts, types")
    verbs.add_parser(
        "test",
        help="all tests, or those of the given paths; [--full] adds the tests marked full_only and runs the others "
        "at full counts; further options go to pytest",
    )
    benches = sorted(path.stem for path in (ROOT / "bench").glob("[a-z]*.py"))
    bench = verbs.add_parser(
        "bench", help=f"one of: {', '.join(benches)}; [--json]; without a name, a list of them"
    )
    bench.add_argument("name", nargs="?", choices=benches)
    chosen, extra = parser.parse_known_args(arguments)
    if extra and chosen.verb in ("setup", "quick", "check"):
        parser.error(f"{chosen.verb} takes no options: {' '.join(extra)}")
    if chosen.verb in ("quick", "check"):
        {"quick": quick, "check": check}[chosen.verb]()
    if chosen.verb == "bench" and chosen.name is None:
        list_benches(benches)
        return
    full = chosen.verb == "test" and "--full" in extra
    what = "full" if full else {"setup": "demo"}.get(chosen.verb, chosen.verb)
    setup(what, extra if chosen.verb == "test" else ())
    if chosen.verb == "demo":
        become("-m", "examples.demo", *extra)
    elif chosen.verb == "test":
        # Use one more worker than there are cores, because tests of servers and browsers often
        # wait. One file needs none: starting them would take longer than most files.
        [first, *others] = paths_in(extra)
        workers = 0 if first.is_file() and not others else min((os.cpu_count() or 1) + 1, 4)
        become("-m", "pytest", "-n", str(workers), "--dist", "worksteal", *extra)
    elif chosen.verb == "bench":
        become(f"bench/{chosen.name}.py", *extra)


if __name__ == "__main__":
    main()
