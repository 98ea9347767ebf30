# SPDX-License-Identifier: Apache-2.0
"""`frankly audit`: verify everything that a server has published, from outside."""

from pathlib import Path

import click
from frankly_protocol.clock import SystemClock

from frankly_server.cli import exits
from frankly_server.cli.console import json_option, remarks, results, table, write_json
from frankly_server.keys.durable import written_whole
from frankly_server.log.audit import Audit
from frankly_server.log.audit import audit as audit_site
from frankly_server.log.site import HttpSite

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("url")
@click.option(
    "--keys", "keys_file", type=_FILE, help="Keys document to start from, as shipped in an app."
)
@click.option(
    "--state",
    "state_file",
    type=_FILE,
    help="File that stores the head; at the next audit, the log must extend it.",
)
@json_option
def audit(url: str, keys_file: Path | None, state_file: Path | None, as_json: bool) -> None:
    """Check the keys, the log, every logged document, proof and count of the server at URL.

    Exit code 0 if everything is valid; otherwise 6, and each finding is shown.
    """
    shipped = None if keys_file is None else keys_file.read_bytes()
    since = state_file.read_bytes() if state_file is not None and state_file.exists() else None
    result = audit_site(HttpSite(url), SystemClock(), shipped, since)
    if as_json:
        write_json(report(result))
    else:
        _show(result)
    if result.findings:
        raise click.exceptions.Exit(exits.INTEGRITY)
    # Written only if there are no findings, because the next audit trusts this head.
    if state_file is not None:
        with written_whole(state_file, replace=True) as file:
            file.write(result.note)


def report(result: Audit) -> dict[str, object]:
    """Return an audit as JSON."""
    entries = [
        {
            "position": e.position,
            "digest": e.digest,
            "survey": e.survey,
            "version": e.version,
            "reports": result.counts.get(e.digest),
        }
        for e in result.entries
    ]
    findings = [{"kind": f.kind, "about": f.about, "detail": f.detail} for f in result.findings]
    return {
        "holds": not findings,
        "keys_version": result.keys_version,
        "origin": result.origin,
        "size": result.size,
        "watched": result.watched,
        "documents": entries,
        "findings": findings,
    }


def _show(result: Audit) -> None:
    rows = [
        (str(e.position), e.survey, str(e.version), e.digest, str(result.counts.get(e.digest, "?")))
        for e in result.entries
    ]
    title = (
        f"Log {result.origin or 'none'}, {result.size} entries; keys version {result.keys_version}"
    )
    results().print(table(title, ("Position", "Survey", "Version", "Digest", "Reports"), rows))
    if not result.watched:
        remarks().print("Too few witnesses have signed this head recently.", markup=False)
    for finding in result.findings:
        remarks().print(f"{finding.kind}: {finding.about}: {finding.detail}", markup=False)
    remarks().print(
        "Everything is valid." if not result.findings else f"{len(result.findings)} finding(s).",
        markup=False,
    )
