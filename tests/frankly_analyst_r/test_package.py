# SPDX-License-Identifier: Apache-2.0
"""R package: R CMD check is clean, and the package's tests pass against a real server."""

import shutil
from pathlib import Path

import pytest

from tests.frankly_analyst.desk import filled, serving
from tests.frankly_analyst_r.commands import r
from tests.frankly_analyst_r.site import PACKAGE

pytestmark = pytest.mark.full_only


def test_r_cmd_check_is_clean_with_tests_against_a_server(tmp_path: Path) -> None:
    assert shutil.which("Rscript") is not None, "apt-get install r-base-core"
    (tmp_path / "library").mkdir()
    # R requests a package index, so it is given an empty one; no test uses the network.
    index = tmp_path / "src" / "contrib" / "PACKAGES"
    index.parent.mkdir(parents=True)
    index.touch()
    (tmp_path / "profile").write_text(f'options(repos = c(CRAN = "file://{tmp_path}"))\n')
    home = tmp_path / "server"
    home.mkdir()
    r("R", "CMD", "build", str(PACKAGE), cwd=tmp_path)
    archive = next(tmp_path.glob("frankly_*.tar.gz")).name
    with serving(filled(home, 1000)) as environment:
        printed = r("R", "CMD", "check", "--no-manual", archive, cwd=tmp_path, **environment)
    assert "Status: OK" in printed, printed[-6000:]
    log = (tmp_path / "frankly.Rcheck" / "tests" / "testthat.Rout").read_text()
    assert "FAIL 0" in log, log[-4000:]
    # With a server and all packages of --full, R skips no test.
    assert "SKIP 0" in log, log[-4000:]
