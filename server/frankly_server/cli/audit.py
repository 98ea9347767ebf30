# SPDX-License-Identifier: Apache-2.0
"""`frankly audit`: re-verify everything a server has published, from outside."""

from pathlib import Path

import click
from frankly_protocol.clock import SystemClock

from frankly_server.cli import exits
from frankly_server.cli.console import json_option, remarks, results, table, write_json
from frankly_server.durable import written_whole
from frankly_server.log.audit import Audit
from frankly_server.log.audit import audit as audit_site
from frankly_server.log.site import HttpSite

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("url")
@click.option("--keys", "keys_file", type=_FILE, help="A keys document to begin with, as shipped in an app.")
@click.option("--state", "state_file", type=_FILE, help="Remembers the head seen; the next must continue it.")
@json_option
def audit(url: str, keys_file: Path | None, state_file: Path | None, as_json: bool) -> None:
    """Check the keys, the log, every logged document, proof and count of the server at URL.

    Exit code 0: everything holds. 6: something does not, and the report names it.
    """
    shipped = None if keys_file is None else keys_file.read_bytes()
    since = state_file.read_bytes() if state_file is not None and state_file.exists() else None
    found = audit_site(HttpSite(url), SystemClock(), shipped, since)
    if as_json:
        write_json(report(found))
    else:
        _show(found)
    if found.findings:
        raise click.exceptions.Exit(exits.INTEGRITY)
    if state_file is not None:
        with written_whole(state_file, replace=True) as file:
            file.write(found.note)


def report(found: Audit) -> dict[str, object]:
    """Return an audit as JSON."""
    entries = [
        {"position": e.position, "digest": e.digest, "survey": e.survey, "version": e.version,
         "reports": found.counts.get(e.digest)}
        for e in found.entries
    ]  # fmt: skip
    findings = [{"kind": f.kind, "about": f.about, "detail": f.detail} for f in found.findings]
    return {"holds": not findings, "keys_version": found.keys_version, "origin": found.origin, "size": found.size,
            "watched": found.watched, "documents": entries, "findings": findings}  # fmt: skip


def _show(found: Audit) -> None:
    rows = [(str(e.position), e.survey, str(e.version), e.digest, str(found.counts.get(e.digest, "?")))
            for e in found.entries]  # fmt: skip
    title = f"Log {found.origin or 'none'}, {found.size} entries; keys version {found.keys_version}"
    results().print(table(title, ("Position", "Survey", "Version", "Digest", "Reports"), rows))
    if not found.watched:
        remarks().print("Not enough witnesses have seen this head lately.", markup=False)
    for finding in found.findings:
        remarks().print(f"{finding.kind}: {finding.about}: {finding.detail}", markup=False)
    remarks().print("Everything holds." if not found.findings else f"{len(found.findings)} finding(s).", markup=False)
