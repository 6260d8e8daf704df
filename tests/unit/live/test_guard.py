"""Refusals: nearest names, and who is let in (over HTTP: test_admin)."""

import msgspec
import pytest

from lorapick.live.guard import Guard, nearest, problem
from lorapick.wire.api import ApiReason, Problem


def test_nearest_are_few_and_best_first() -> None:
    names = ["legal-v1", "legal-v2", "legal-v3", "legal-v4", "medical"]
    assert nearest("legal-v2x", names)[0] == "legal-v2"
    assert len(nearest("legal-v2x", names)) == 3
    assert nearest("zzz", names) == ()


def test_nearest_looks_at_a_bounded_number_of_names() -> None:
    assert nearest("needle", [*(f"a{n}" for n in range(2000)), "needle"]) == ()


def test_problem_document() -> None:
    response = problem(503, ApiReason.TOO_MANY_STREAMS, "full", headers={"retry-after": "5"})
    document = msgspec.json.decode(response.body, type=Problem)
    assert response.media_type == "application/problem+json"
    assert response.headers["retry-after"] == "5"
    assert (document.type, document.title) == ("urn:lorapick:problem:too_many_streams", "too many streams")


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
async def test_nothing_but_http_is_answered(kind: str) -> None:
    async def fail(*_: object) -> None:
        raise AssertionError(kind)

    await Guard(fail, bind_host="127.0.0.1")({"type": kind}, fail, fail)
