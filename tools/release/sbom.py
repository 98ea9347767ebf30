# SPDX-License-Identifier: Apache-2.0
"""Bill of materials of the server and the SDKs, from the runtime lock, as CycloneDX 1.6 JSON."""

import json
import re
import uuid
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any, Final

from frankly_protocol import __version__

_PIN: Final = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)(?: ; (?P<where>[^\\\n]+))?"
)
_OWN: Final = (
    "frankly-protocol",
    "frankly-design",
    "frankly-sdk",
    "frankly-analyst",
    "frankly-server",
)
_OWN_NPM: Final = "@frankly/sdk"
"""It contains no third-party code; frameworks are dependencies of the app."""


def bill_of_materials(lock: Path) -> str:
    """Return the bill of a lock of hashed requirements; equal locks and environments give equal bytes.

    Licences are read from installed packages; a package that is not installed has none in the bill.
    """
    own = [*map(_own_component, _OWN), _own_npm_component(_OWN_NPM)]
    components = [*own, *_locked(lock.read_text(encoding="utf-8"))]
    name = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(components, sort_keys=True))
    body = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{name}",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "name": "frankly", "version": __version__}
        },
        "components": components,
    }
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _own_component(name: str) -> dict[str, Any]:
    return _component(name, __version__) | {"licenses": [{"expression": "Apache-2.0"}]}


def _own_npm_component(name: str) -> dict[str, Any]:
    address = f"pkg:npm/{name.replace('@', '%40')}@{__version__}"
    return _own_component(name) | {"purl": address, "bom-ref": address}


def _locked(text: str) -> Iterator[dict[str, Any]]:
    """Yield one component per pin; a package may have several, with markers for Python versions."""
    for entry in re.split(r"\n(?=\S)", text.strip()):
        pin = _PIN.match(entry)
        if pin is None:
            continue
        component = _component(pin["name"], pin["version"])
        hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
        component["properties"] = [
            {"name": "frankly:file:sha256", "value": value} for value in hashes
        ]
        if pin["where"]:
            component["properties"].append(
                {"name": "frankly:marker", "value": pin["where"].strip()}
            )
        yield component | _licence(pin["name"])


def _component(name: str, version: str) -> dict[str, Any]:
    address = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    return {
        "type": "library",
        "name": name,
        "version": version,
        "purl": address,
        "bom-ref": address,
    }


def _licence(name: str) -> dict[str, Any]:
    try:
        package = metadata(name)
    except PackageNotFoundError:
        return {}
    if package["License-Expression"]:
        return {"licenses": [{"expression": package["License-Expression"]}]}
    classified = [
        line.rpartition(" :: ")[2]
        for line in package.get_all("Classifier", [])
        if line.startswith("License")
    ]
    names = classified or [(package["License"] or "").strip().split("\n")[0][:80]]
    return {"licenses": [{"license": {"name": licence}} for licence in names if licence]}
