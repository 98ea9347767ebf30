# SPDX-License-Identifier: Apache-2.0
"""Blocks of a survey file about habits, for tests and benches that need some survey."""

WINDOW = """\
opens: 2026-05-01T00:00:00Z
closes: 2026-07-01T00:00:00Z
expires: 2026-08-01T00:00:00Z
"""
SMOKES = """\
  - id: smokes
    notion: ldp
    epsilon: "1"
    mechanism: warner
    questions:
      - id: smokes
        text: {en: "Do you smoke?"}
        choices: [{id: "no", label: {en: "No"}}, {id: "yes", label: {en: "Yes"}}]
"""
HOW_OFTEN = """\
        choices:
          - {id: never, label: {en: Never}}
          - {id: weekly, label: {en: Weekly}}
          - {id: daily, label: {en: Daily}}
"""
DRINKS = f"""\
  - id: drinks
    notion: ldp
    epsilon: "1"
    mechanism: grr
    questions:
      - id: drinks
        text: {{en: "How often do you drink?"}}
{HOW_OFTEN}"""
REGION = """\
strata:
  - id: region
    text: {en: "Where do you live?"}
    choices: [{id: north, label: {en: North}}, {id: south, label: {en: South}}]
"""


def habits(*blocks: str, budget: str, window: str = WINDOW, strata: str = "") -> bytes:
    """Return the file with these blocks; without a window, the survey opens when it is published."""
    head = (
        f"name: habits\ntitle: {{en: Habits}}\nlanguages: [en]\n{window}min_reports: "
        f'10\nbudget: "{budget}"\nblocks:\n'
    )
    return (head + "".join(blocks) + strata).encode()
