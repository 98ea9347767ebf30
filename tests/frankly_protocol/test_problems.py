# SPDX-License-Identifier: Apache-2.0
"""Problem codes, their URIs, and the body of an error."""

from frankly_protocol.problems import Problem, problem_body


def test_codes_are_unique_and_both_directions_agree() -> None:
    assert len({p.code for p in Problem}) == len(Problem)
    assert all(Problem.from_code(p.code) is p for p in Problem)
    assert all(p.uri == f"urn:frankly:problem:{p.code}" for p in Problem)
    assert Problem.from_code("nonsense") is None


def test_a_body_has_the_members_of_rfc_9457_with_code_and_field() -> None:
    body = problem_body(Problem.CLOSED, "it closed yesterday", "doc")
    assert body == {
        "type": "urn:frankly:problem:closed",
        "title": "The survey is closed.",
        "status": 410,
        "code": "closed",
        "detail": "it closed yesterday",
        "field": "doc",
    }
