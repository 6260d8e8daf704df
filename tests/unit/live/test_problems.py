"""Refusals as documents, and nearest names."""

import msgspec

from lorapick.live.problems import nearest, problem
from lorapick.wire.api import ApiReason, FieldProblem, Problem


def test_nearest_are_few_and_best_first() -> None:
    names = ["legal-v1", "legal-v2", "legal-v3", "legal-v4", "medical"]
    assert nearest("legal-v2x", names)[0] == "legal-v2"
    assert len(nearest("legal-v2x", names)) == 3
    assert nearest("zzz", names) == ()


def test_nearest_looks_at_a_bounded_number_of_names() -> None:
    assert nearest("needle", [*(f"a{n}" for n in range(2000)), "needle"]) == ()


def test_problem_document() -> None:
    response = problem(503, ApiReason.TOO_MANY_STREAMS, detail="full", headers={"retry-after": "5"})
    document = msgspec.json.decode(response.body, type=Problem)
    assert response.media_type == "application/problem+json"
    assert response.headers["retry-after"] == "5"
    assert (document.type, document.title) == ("urn:lorapick:problem:too_many_streams", "too many streams")


def test_what_is_wrong_with_a_body_stands_field_by_field() -> None:
    wrong = FieldProblem(field="replicas", value="0", message="must be 1 or more", remedy="give it")
    response = problem(400, ApiReason.BODY_INVALID, detail="no", errors=(wrong,))
    assert msgspec.json.decode(response.body, type=Problem).errors == (wrong,)


def test_a_very_long_name_is_no_slip() -> None:
    assert nearest("a" * 300, ["a" * 299]) == ()
