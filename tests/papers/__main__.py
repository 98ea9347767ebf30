# SPDX-License-Identifier: Apache-2.0
"""Print which test shows which claim."""

import sys

from tests.papers.registry import collect

for claim, names in sorted(collect().items()):
    sys.stdout.write(f"{claim:28} {', '.join(sorted(set(names)))}\n")
