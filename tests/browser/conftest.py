# SPDX-License-Identifier: Apache-2.0
"""Fixture: one run of the demo, shared by all tests of its page."""

import pytest

from tests.demo import DemoRun, run_demo


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> DemoRun:
    """The demo's page and its output."""
    run = run_demo(tmp_path_factory.mktemp("demo"))
    run.require_complete()
    return run
