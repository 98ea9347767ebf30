# SPDX-License-Identifier: Apache-2.0
"""Names of the package: each is there, is explained, and loads no solver before it is used."""

import inspect
import json
import subprocess
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

import frankly_design as fd
import pytest
from frankly_protocol.errors import InvalidInput

HEAVY = ("numpy", "scipy", "highspy", "flint", "cdd", "pandas", "matplotlib", "pydantic")


def fresh(code: str) -> Any:
    """Run code in a new interpreter; return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", f"import json, sys\nsys.path[:0] = {sys.path!r}\n{code}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", fd.__all__)
def test_every_name_resolves_and_is_listed(name: str) -> None:
    value = getattr(fd, name)
    assert name in dir(fd)
    assert not isinstance(value, ModuleType)
    if name not in ("MECHANISMS", "__version__"):
        assert callable(value)
        assert value.__name__ == name
        assert value.__module__.startswith(("frankly_design.interface.", "frankly_protocol."))


def test_names_are_unique_and_every_place_is_public() -> None:
    assert len(set(fd.__all__)) == len(fd.__all__)
    assert set(fd.__all__) - set(fd._PLACES) == {
        *("DenseMechanism", "DocumentRejected", "InvalidInput", "__version__")
    }
    assert set(fd._PLACES) <= set(fd.__all__)
    assert fd.InvalidInput is InvalidInput


@pytest.mark.parametrize("name", ["laplace", "optimise", "_hidden", "estimate_share"])
def test_an_unknown_name_is_no_attribute(name: str) -> None:
    with pytest.raises(AttributeError, match=f"module 'frankly_design' has no attribute '{name}'"):
        getattr(fd, name)
    assert not hasattr(fd, name)


@pytest.mark.slow
def test_the_package_alone_loads_no_solver() -> None:
    code = "import frankly_design, os\nprint(json.dumps([sorted(sys.modules), os.environ['OPENBLAS_NUM_THREADS']]))"
    loaded, threads = fresh(code)
    assert not {module.partition(".")[0] for module in loaded} & set(HEAVY)
    assert threads == "1"
    # The same look at a use of the package finds them.
    used = fresh("import frankly_design as fd\nfd.design\nprint(json.dumps(sorted(sys.modules)))")
    assert {"numpy", "pydantic"} <= set(used)
    assert not {"pandas", "matplotlib"} & set(used)


MODULES = (
    "estimate",
    "form",
    "families",
    "measures",
    "notions",
    "tables",
    "engine",
    "requests",
    "interface",
)
PLACES = ("tables", "promised", *sorted(set(fd._PLACES.values())))


@pytest.mark.slow
def test_submodules_do_not_hide_public_names() -> None:
    code = (
        "import frankly_design as fd, types\nfrom importlib import import_module\n"
        f"for name in {MODULES!r}: import_module(f'frankly_design.{{name}}')\n"
        f"for name in {PLACES!r}: import_module(f'frankly_design.interface.{{name}}')\n"
        "print(json.dumps([n for n in fd.__all__ if isinstance(getattr(fd, n), types.ModuleType)]))"
    )
    assert fresh(code) == []
    assert not {*MODULES} & {*fd.__all__}


CLASSES = [name for name in fd.__all__ if inspect.isclass(getattr(fd, name))]


@pytest.mark.parametrize("name", [n for n in fd.__all__ if n not in ("MECHANISMS", "__version__")])
def test_every_name_is_explained(name: str) -> None:
    value = getattr(fd, name)
    assert not isinstance(value, type) or "__doc__" in vars(value)  # not inherited
    assert len(str(value.__doc__).strip()) > 20


@pytest.mark.parametrize("name", CLASSES)
def test_every_public_method_is_explained(name: str) -> None:
    for attribute, value in vars(getattr(fd, name)).items():
        if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
            assert (value.__doc__ or "").strip(), attribute


@pytest.mark.parametrize(
    "name", ["design", "frontier", "compare", "measure", "estimate_shares", "design_form"]
)
def test_every_argument_is_in_the_docstring(name: str) -> None:
    function = getattr(fd, name)
    for argument in inspect.signature(function).parameters:
        assert argument in str(function.__doc__), argument


def test_every_module_of_the_interface_says_what_it_is() -> None:
    for place in PLACES:
        assert (import_module(f"frankly_design.interface.{place}").__doc__ or "").strip()
