"""Messages that are easy to get wrong, and the pieces they are made of."""

import json

import pytest

from lorapick.model.answers import ModelCard
from lorapick.model.reasons import STATUS, Reason
from lorapick.wire.extproc import messages
from lorapick.wire.extproc.chunking import MAX_CHUNK, chunks
from lorapick.wire.extproc.errors import error_body, error_headers
from lorapick.wire.extproc.messages import Destination
from lorapick.wire.extproc.models import list_models, one_model


def test_usual_messages_are_built_once() -> None:
    assert messages.routed_headers(Destination("a:1")) is messages.routed_headers(Destination("a:1"))
    assert messages.routed_body(Destination("a:1")) is messages.routed_body(Destination("a:1"))
    assert messages.routed_body(Destination("a:1")) is not messages.routed_body(Destination("a:1"), body=b"")


def test_an_emptied_body_is_said_to_be_empty() -> None:
    mutation = messages.replaced_response_body(b"").response_body.response.body_mutation
    assert mutation.WhichOneof("mutation") == "clear_body"
    mutation = messages.routed_body(Destination("a:1"), body=b"").request_body.response.body_mutation
    assert mutation.WhichOneof("mutation") == "body"


def test_headers_overwrite_what_clients_sent() -> None:
    mutation = messages.routed_headers(Destination("a:1")).request_headers.response.header_mutation
    assert [option.append_action for option in mutation.set_headers] == [
        messages.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD
    ]


@pytest.mark.parametrize(
    ("size", "sizes"),
    [
        (0, [0]),
        (1, [1]),
        (MAX_CHUNK, [MAX_CHUNK]),
        (MAX_CHUNK + 1, [MAX_CHUNK, 1]),
        (2 * MAX_CHUNK + 1000, [MAX_CHUNK, MAX_CHUNK, 1000]),
    ],
)
def test_chunks(size: int, sizes: list[int]) -> None:
    assert [len(chunk) for chunk in chunks(b"x" * size)] == sizes


@pytest.mark.parametrize("reason", [*Reason])
def test_every_reason_can_be_an_answer(reason: Reason) -> None:
    headers = dict(error_headers(reason, 0.2))
    assert headers["x-lorapick-reason"] == reason.value
    assert headers["retry-after"] == "1"
    status = STATUS.get(reason, 503)
    assert json.loads(error_body(status, "why"))["error"]["type"].endswith("Error")


@pytest.mark.parametrize(("status", "kind"), [(402, "BadRequestError"), (500, "InternalServerError")])
def test_other_statuses(status: int, kind: str) -> None:
    assert json.loads(error_body(status, "why"))["error"]["type"] == kind


def test_models_are_listed_once_in_order() -> None:
    cards = [ModelCard(id="b"), ModelCard(id="a", parent="b"), ModelCard(id="b", root="/other")]
    listed = json.loads(list_models(cards, created=5))
    assert [(card["id"], card["root"]) for card in listed["data"]] == [("b", "b"), ("a", "a")]
    assert json.loads(one_model(cards, "a", created=5) or b"") == listed["data"][1]
    assert one_model(cards, "c", created=5) is None
