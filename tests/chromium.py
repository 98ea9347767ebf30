# SPDX-License-Identifier: Apache-2.0
"""Chromium for the tests of pages and the browser SDK: its headless shell, or the full browser.

The shell is the same engine (Blink, V8, storage, network) at the same version, without the window,
services and profile, so a page opens in a quarter of the time. With --full the tests run in the
full browser.
"""

import os
from typing import Final

CHROMIUM: Final = os.environ.get("TEST_CHROMIUM", "/usr/bin/chromium-headless-shell")
"""Path of the program; TEST_CHROMIUM is set by --full, also for processes that tests start."""

# Chromium's own services are switched off, because nothing may leave the machine during tests. The
# shell has no profile, so it sends a language with requests, as every browser does, only if one is
# set here.
QUIET: Final = (
    "--no-sandbox --disable-dev-shm-usage --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run --accept-lang=en-US"
).split()
