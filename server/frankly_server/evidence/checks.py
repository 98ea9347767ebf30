# SPDX-License-Identifier: Apache-2.0
"""Commands that check the statements; other parts refer to them by number."""

from shlex import quote

from frankly_server.evidence.content import Command, FolderPart, Grid
from frankly_server.evidence.facts import Facts


def checks(facts: Facts) -> FolderPart:
    """Return the part with the numbered commands."""
    document, server = facts.document, facts.server
    survey = f"{server}/v1/surveys/{document.survey}"
    link, digest = quote(facts.state.link), document.digest
    fetched = {"document.json": f"{survey}/document", "keys.json": f"{server}/v1/keys/chain"}
    # A log without witnesses has no proof that a device, or the second verifier, would accept.
    if facts.is_witnessed:
        fetched["proof.txt"] = f"{server}/v1/log/proof/{digest}"
    fetch = " && ".join(f"curl -fsSo {name} {quote(url)}" for name, url in fetched.items())
    proof = " --proof proof.txt" if facts.is_witnessed else ""
    rows = [
        ("C1", f"Fetch {', '.join(fetched)}", Command(fetch)),
        (
            "C2",
            "Verify every promise exactly, and print the level of the whole report",
            Command("frankly verify --json < document.json"),
        ),
        (
            "C3",
            "Verify everything that the server has ever published",
            Command(f"frankly audit {quote(server)}"),
        ),
        (
            "C4",
            "Verify keys, signatures, promises and level with the second verifier (folder verifier/)",
            Command(
                "frankly-verify keys keys.json && frankly-verify document --chain keys.json"
                f"{proof} --link {link} document.json"
            ),
        ),
        (
            "C5",
            "Show what a device would send, and what it can reveal, as a respondent reads it",
            Command(f"frankly-sdk explain --link {link} --store store.db"),
        ),
        (
            "C6",
            "Show what answering costs a device",
            Command(f"frankly-sdk budget --link {link} --store store.db"),
        ),
        (
            "C7",
            "Number of released reports of every version",
            Command(f"curl -fsS {quote(f'{survey}/audit')}"),
        ),
        ("C8", "Accounts of this server (on the server only)", Command("frankly admin list")),
    ]
    return FolderPart(
        "checks",
        "How to check these statements",
        [
            f"The statements are about version {document.version}, digest {digest}. If C1 fetches a "
            "newer version, its digest differs, and this folder must be written again.",
            Grid(("Check", "What it shows", "Command"), rows),
            "Facts about the software (what a server stores, what a device does) are in docs/privacy.md, "
            "docs/security.md and docs/spec/9-threats.md, each with its test.",
        ],
    )
