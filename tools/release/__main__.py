# SPDX-License-Identifier: Apache-2.0
"""Build all files of a release, twice and in different places: python -m tools.release --help.

The two builds must be the same bytes. They are written with a bill of materials and SHA256SUMS,
which is signed if a key is given. The bundle of the browser SDK is made anew from its sources, by
Node, and must be the one in the checkout.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools.release.npm import pack
from tools.release.sbom import bill_of_materials

ROOT: Final = Path(__file__).resolve().parents[2]
PROJECTS: Final = ("shared", "design", "client_sdk", "analyst", "server")
PLACES: Final = (*PROJECTS, "migrations", "LICENSE", ".gitignore")
"""What a build reads."""
NAMESPACE: Final = "frankly-release"
"""What signatures of releases are for, as ssh-keygen checks."""
EPOCH: Final = "1577836800"
"""2020-01-01 in seconds: time of every file in an archive, which makes builds reproducible."""


def build(folder: Path, root: Path = ROOT) -> list[Path]:
    """Write wheels and source archives of the five distributions, and the npm package, to `folder`.

    Returns the archives, sorted. Raises subprocess.CalledProcessError if a build fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for project in PROJECTS:
        build_one(root / project, folder, "wheel", "sdist")
    pack(root / "client_sdk" / "browser", folder, int(EPOCH))
    return sorted(path for path in folder.iterdir() if path.suffix in (".whl", ".gz", ".tgz"))


def build_one(project: Path, folder: Path, *targets: str) -> None:
    """Write a project's `targets` ("wheel", "sdist") to `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    for target in targets:
        command += ["-t", target]
    _run(command, project, _environment())


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> None:
    """Run a command. Raises BuildFailed with what it wrote to standard error."""
    done = subprocess.run(  # noqa: S603
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    if done.returncode:
        raise BuildFailed(f"{' '.join(command)}\n{done.stderr.strip()}")


def _environment() -> Mapping[str, str]:
    return {
        # HATCH_BUILD_NO_HOOKS would leave out what a package carries, in both builds.
        **{name: text for name, text in os.environ.items() if not name.startswith("HATCH_")},
        "SOURCE_DATE_EPOCH": EPOCH,
        "PYTHONHASHSEED": "0",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
    }


class BuildFailed(RuntimeError):
    """A command of a build failed; the message is its standard error."""


class NotReproducible(BuildFailed):
    """Two builds of the same sources differ, or the bundle is not that of its sources."""


def build_twice(folder: Path, *, with_bundle: bool) -> list[Path]:
    """Build in two copies of the checkout, with other paths, modes and times; keep one result.

    Returns the archives in `folder`, sorted. Raises NotReproducible.
    """
    with TemporaryDirectory() as scratch:
        made = []
        for name, mode, seconds in (
            ("one", 0o644, 1_000_000_000),
            ("another", 0o664, 1_700_000_000),
        ):
            copy = copied(Path(scratch, name), mode, seconds)
            if with_bundle:
                make_bundle(copy / "client_sdk/browser")
            made.append(build(Path(scratch, f"made-{name}"), copy))
        first, second = ({path.name: path.read_bytes() for path in archives} for archives in made)
        if differing := [
            name for name in {**first, **second} if first.get(name) != second.get(name)
        ]:
            raise NotReproducible(f"two builds differ in {', '.join(sorted(differing))}")
        folder.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copy(path, folder)) for path in made[0]]


def copied(folder: Path, mode: int, seconds: int) -> Path:
    """Copy the checkout's tracked files that a build reads, links as files; return `folder`.

    mode, seconds : permissions and time of every copy.
    """
    command = ["git", "ls-files", "-z", "--", *PLACES]
    tracked = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603
    for name in tracked.decode().rstrip("\0").split("\0"):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
        target.chmod(mode)
        os.utime(target, (seconds, seconds))
    return folder


def make_bundle(browser: Path) -> None:
    """Make the bundle and the hosted page's files anew. Raises NotReproducible if they change."""
    for name in ("bundle", "page"):
        shutil.rmtree(browser / name)  # otherwise files that no source makes would stay
    _run(("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"), browser)
    _run(("node", "bundle.mjs"), browser)
    shutil.rmtree(browser / "node_modules")
    for name in ("bundle", "page"):
        here, there = (_contents(place / name) for place in (browser, ROOT / "client_sdk/browser"))
        if here != there:
            raise NotReproducible(
                f"{name}/ is not made from its sources: npm run bundle, and commit"
            )


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def checksums(files: list[Path]) -> str:
    """Return lines in the format of `sha256sum --check`."""
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files
    )


def sign(sums: Path, key: Path, signer: str) -> Path:
    """Sign SHA256SUMS by an SSH key; return SHA256SUMS.SIGNER.sig."""
    _run(["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(key), str(sums)], sums.parent)
    return sums.with_name(f"{sums.name}.sig").rename(sums.with_name(f"{sums.name}.{signer}.sig"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Build, then write the bill of materials, the checksums of all files, and their signature."""
    parser = argparse.ArgumentParser(description="Build all files of a release, twice.")
    parser.add_argument("folder", type=Path, nargs="?", default=ROOT / "dist")
    parser.add_argument("--key", type=Path, help="SSH key that signs SHA256SUMS")
    parser.add_argument("--signer", help="name of the signer, in SHA256SUMS.SIGNER.sig")
    parser.add_argument(
        "--without-bundle",
        action="store_true",
        help="leave out what needs Node 20 and its registry",
    )
    options = parser.parse_args(arguments)
    status = ["git", "status", "--porcelain"]
    changed = subprocess.run(status, cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S603
    if options.key:
        if not options.signer or not options.key.is_file():
            parser.error("--key names a file, and --signer whose it is")
        if options.without_bundle or changed:
            parser.error("only a whole release of a clean checkout is signed: see git status")
    if not options.without_bundle and not (shutil.which("npm") and shutil.which("node")):
        parser.error("the bundle needs node and npm; --without-bundle leaves out its check")
    folder = options.folder.resolve()
    try:
        files = build_twice(folder, with_bundle=not options.without_bundle)
        bill, sums = folder / "frankly.cdx.json", folder / "SHA256SUMS"
        bill.write_text(bill_of_materials(ROOT / "requirements" / "runtime.txt"), encoding="utf-8")
        listed = checksums(sorted([*files, bill]))
        if not sums.exists() or sums.read_text(encoding="utf-8") != listed:
            for stale in folder.glob("SHA256SUMS.*.sig"):
                stale.unlink()
        sums.write_text(listed, encoding="utf-8")
        sys.stdout.write(listed)
        if changed:
            sys.stdout.write("built with changes that are not committed\n")
        if options.key:
            sys.stdout.write(f"signed: {sign(sums, options.key, options.signer).name}\n")
    except BuildFailed as failed:
        sys.exit(str(failed))


if __name__ == "__main__":
    main()
