"""The OpenAPI document says what the routes do (that they answer is in test_admin)."""

import msgspec

from lorapick.live.openapi import document

PATHS = document()["paths"]


def test_it_is_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(document()))["openapi"] == "3.1.0"


def test_names_in_paths_are_parameters() -> None:
    for path, verbs in PATHS.items():
        for verb in verbs.values():
            named = [place["name"] for place in verb.get("parameters", ()) if place["in"] == "path"]
            assert named == [part[1:-1] for part in path.split("/") if part.startswith("{")], path


def test_errors_are_problem_documents_everywhere() -> None:
    for path, verbs in PATHS.items():
        for verb in verbs.values():
            others = [answer for status, answer in verb["responses"].items() if status not in ("200", "202")]
            problems = [] if path == "/openapi.json" else [["application/problem+json"]]
            assert [list(answer["content"]) for answer in others] == problems, path


def test_tiers_are_words_in_every_schema() -> None:
    schemas = document()["components"]["schemas"]
    assert "Tier" not in schemas
    assert schemas["Cell"]["properties"]["tier"] == {"type": "string"}
