# SPDX-License-Identifier: Apache-2.0
"""Survey of 1974 on a real server, with public answers about marriage, for the notebook about regression.

The noise is drawn with a fixed seed, so that outputs are the same in every run, except for ids.
"""

import random
from math import exp
from pathlib import Path
from typing import Final

from examples.demo.people import records
from tests.frankly_server.web.site import Site, make_site

EPSILON: Final = 2
SURVEY: Final = f"""\
name: marriage
title: {{en: Marriage}}
languages: [en]
opens: 2026-05-01T00:00:00Z
closes: 2026-07-01T00:00:00Z
expires: 2026-08-01T00:00:00Z
min_reports: 150
expected_reports: 6366
budget: "{EPSILON}"
blocks:
  - id: affair
    notion: ldp
    epsilon: "{EPSILON}"
    mechanism: warner
    questions:
      - id: affair
        text: {{en: "Did you ever have an affair?"}}
        choices: [{{id: "no", label: {{en: "No"}}}}, {{id: "yes", label: {{en: "Yes"}}}}]
strata:
  - id: marriage
    text: {{en: "How do you rate your marriage?"}}
    choices: [{{id: fair, label: {{en: Fair or worse}}}}, {{id: good, label: {{en: Good}}}},
              {{id: very-good, label: {{en: Very good}}}}]
  - id: religious
    text: {{en: "How religious are you?"}}
    choices: [{{id: "1", label: {{en: Not}}}}, {{id: "2", label: {{en: Mildly}}}},
              {{id: "3", label: {{en: Fairly}}}}, {{id: "4", label: {{en: Strongly}}}}]
  - id: children
    text: {{en: "Do you have children?"}}
    choices: [{{id: none, label: {{en: "No"}}}}, {{id: some, label: {{en: "Yes"}}}}]
""".encode()
BATCH: Final = 500
WOMEN: Final = 6366


def filled(home: Path, n: int) -> Site:
    """Return a site with the reports of the first n women of the data set, which has `WOMEN`."""
    site = make_site(home, f"sqlite:///{home / 'frankly.db'}", SURVEY, "marriage")
    draw, reports = random.Random(1), []
    for number, row in enumerate(records("fair")[:n]):
        truth = int(float(row["affairs"]) > 0)
        lies = draw.random() >= exp(EPSILON) / (exp(EPSILON) + 1)
        marriage = {4: "good", 5: "very-good"}.get(round(float(row["rate_marriage"])), "fair")
        strata = {
            "marriage": marriage,
            "religious": str(round(float(row["religious"]))),
            "children": "some" if float(row["children"]) > 0 else "none",
        }
        reports.append(site.report(number, y=[truth ^ lies], strata=strata))
    for start in range(0, len(reports), BATCH):
        site.services.intake.accept_batch(site.survey, reports[start : start + BATCH])
    site.release()
    return site
