"""Which paths are routed by model."""

import pytest

from lorapick.wire.extproc.routes import Route, model_in, route_of


@pytest.mark.parametrize(
    "path",
    [
        "/v1/completions",
        "/v1/chat/completions",
        "/v1/chat/completions?api-version=1",
        "/v1/embeddings",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/rerank",
        "/v1/rerank",
        "/v2/rerank",
        "/score",
        "/tokenize",
        "/detokenize",
        "/pooling",
        "/classify/",
    ],
)
def test_by_model(path: str) -> None:
    assert route_of("POST", path) is Route.BY_MODEL
    assert route_of("GET", path) is Route.OTHER


def test_management_is_never_for_clients() -> None:
    for path in (
        "/v1/load_lora_adapter",
        "/unload_lora_adapter",
        "/sleep?level=2",
        "/emulator/restart",
        "/v1%2Funload_lora_adapter",
        "//v1/%75nload_lora_adapter",
    ):
        assert route_of("POST", path) is Route.MANAGEMENT
    assert route_of("POST", "/v1/load_lora_adapters") is Route.OTHER
    assert route_of("GET", "/sleepy") is Route.OTHER


@pytest.mark.parametrize(
    "path",
    ["/", "", "/v1/audio/transcriptions", "/v1/responses/abc/cancel", "/xv1/completions"],
)
def test_other(path: str) -> None:
    assert route_of("POST", path) is Route.OTHER


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/models", None),
        ("/v1/models/", None),
        ("/v1/models?limit=1", None),
        ("/v1/models/ad0", "ad0"),
        ("/v1/models/meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("/v1/models/a%2Fb%407/", "a/b@7"),
    ],
)
def test_models(path: str, name: str | None) -> None:
    assert route_of("GET", path) is Route.MODELS
    assert route_of("POST", path) is Route.OTHER
    assert model_in(path) == name
