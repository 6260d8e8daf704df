"""Error bodies: one exception that carries status and body, and the texts that clients match on.

In: what was wrong. Out: `RefusalError`, which the application turns into a response.
Not here: who is refused and when (see the routes), HTTP.

Shapes and texts are those of vLLM 0.32; the type is a phrase for errors of the framework ("Bad Request"), and a class
name for errors of the server ("BadRequestError").
"""

from collections.abc import Mapping
from http import HTTPStatus

from lorapick.model.pods import Engine
from lorapick.model.units import AdapterName, Tokens

Json = Mapping[str, object]
_SHOWN = 2000


KV_REFUSED = "x-lorapick-kv-refused"
"""Header of an answer that refuses KV of another pod: the reason, as one word."""


class RefusalError(Exception):
    """An answer other than 200, with vLLM's error body."""

    kv_refused: str | None = None
    """Why KV was not taken; None: the refusal is of the request itself."""

    def __init__(self, status: int, kind: str, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param

    def body(self, engine: Engine = Engine.VLLM) -> Json:
        """The JSON document, in the shape that an engine gives it."""
        error = {"message": str(self), "type": self.kind, "param": self.param, "code": self.status}
        match engine:
            case Engine.SGLANG | Engine.TRTLLM:
                return {"object": "error", **error}
            case Engine.TRITON:
                return {"detail": str(self)}
            case _:
                return {"error": error}


def kv_refusal(status: int, message: str, *, reason: str) -> RefusalError:
    """KV of another pod is not taken. vLLM has no such answer: it takes whatever it is given."""
    error = RefusalError(status, HTTPStatus(status).phrase, f"KV is not taken: {message}")
    error.kv_refused = reason
    return error


def http_refusal(status: int) -> RefusalError:
    """What the framework answers by itself, such as 404 for an unknown path."""
    phrase = HTTPStatus(status).phrase
    return RefusalError(status, phrase, phrase)


def bad_request(message: str, *, param: str | None = None) -> RefusalError:
    """400 from the server's own checks."""
    return RefusalError(400, "BadRequestError", message, param=param)


def invalid_input(message: str) -> RefusalError:
    """400 of the adapter routes."""
    return RefusalError(400, "InvalidUserInput", message)


def not_found(message: str, *, param: str | None = None) -> RefusalError:
    """404 from the server."""
    return RefusalError(404, "NotFoundError", message, param=param)


def internal(message: str) -> RefusalError:
    """500: the engine failed."""
    return RefusalError(500, "InternalServerError", message)


def unknown_model(name: str, base_model: str) -> RefusalError:
    """404 for a name that is neither the base model nor a registered adapter."""
    return not_found(f"The model `{name}` does not exist. Valid aliases: {base_model}.", param="model")


def prompt_too_long(prompt: Tokens, limit: Tokens) -> RefusalError:
    """400 for a prompt that fills the context by itself."""
    return bad_request(
        f"This model's maximum context length is {limit} tokens. However, your request has {prompt} input tokens. "
        "Please reduce the length of the input messages.",
        param="input_tokens",
    )


def output_too_long(prompt: Tokens, output: Tokens, limit: Tokens) -> RefusalError:
    """400 for a prompt that fits and an answer that does not."""
    return bad_request(
        f"'max_tokens' or 'max_completion_tokens' is too large: {output}. This model's maximum context length is "
        f"{limit} tokens and your request has {prompt} input tokens ({output} > {limit} - {prompt}).",
        param="max_tokens",
    )


def invalid_body(kind: str, place: tuple[str | int, ...], message: str, given: object) -> RefusalError:
    """400 of the framework's validation; vLLM shows the error's Python form, here cut to a readable length."""
    shown = str({"type": kind, "loc": place, "msg": message, "input": given})
    param = ".".join(str(part) for part in place)
    return RefusalError(400, "Bad Request", f"1 validation error:\n  {shown[:_SHOWN]}", param=param)


def missing_field(field: str, given: object) -> RefusalError:
    """400 for a required field that the body lacks."""
    return invalid_body("missing", ("body", field), "Field required", given)


def unknown_adapter_path(name: AdapterName, path: str) -> RefusalError:
    """404 for a load from a place where nothing is."""
    return not_found(f"Loading lora {name} failed: No adapter found for {path}")
