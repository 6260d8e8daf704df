"""What the pod model refuses, each refusal its own type.

The emulated server turns them into vLLM's status codes: `UnknownAdapter` is a 404, the other `PodError`s are 400.
"""
# ruff: noqa: N818 - a refusal is named after what was wrong with the call; an `Error` behind it would say nothing

from lorapick.model.units import AdapterName, RequestId, Seconds, Tokens


class PodError(Exception):
    """Base of all refusals of the pod model."""


class UnknownAdapter(PodError):
    """The name is not registered; vLLM answers 404."""

    def __init__(self, name: AdapterName) -> None:
        super().__init__(f"The model `{name}` does not exist.")
        self.name = name


class PromptTooLong(PodError):
    """Prompt and output together exceed what one sequence may hold."""

    def __init__(self, prompt_tokens: Tokens, output_tokens: Tokens, limit: Tokens) -> None:
        super().__init__(
            f"{prompt_tokens} prompt tokens + {output_tokens} output tokens exceed the limit of {limit} tokens: "
            f"shorten the prompt or ask for at most {max(0, limit - prompt_tokens)} tokens"
        )
        self.prompt_tokens = prompt_tokens
        self.output_tokens = output_tokens
        self.limit = limit


class RankTooLarge(PodError):
    """The adapter's rank is above the pod's `max_lora_rank`."""

    def __init__(self, name: AdapterName, rank: int, limit: int) -> None:
        super().__init__(f"LoRA rank {rank} of {name} is greater than max_lora_rank {limit}: raise the pod's limit")
        self.name = name
        self.rank = rank
        self.limit = limit


class AdapterTooLarge(PodError):
    """Unified memory: the adapter would leave no page for context."""

    def __init__(self, name: AdapterName, pages: int, limit: int) -> None:
        super().__init__(f"{name} takes {pages} pages and the pool has {limit}: use a larger pool or a smaller adapter")
        self.name = name
        self.pages = pages
        self.limit = limit


class KvMismatch(PodError):
    """The KV that came with a request was computed under another adapter."""

    def __init__(self, wanted: AdapterName | None, found: AdapterName | None) -> None:
        super().__init__(
            f"the prompt's KV was computed under {_adapter(found)} and the request is for {_adapter(wanted)}: "
            "prefill it under the same"
        )
        self.wanted = wanted
        self.found = found


def _adapter(name: AdapterName | None) -> str:
    return "the base model" if name is None else f"adapter {name}"


class BadRequest(PodError):
    """The request can not be a request: an id in use, no prompt, nothing to generate."""


class UnknownRequest(PodError):
    """No request of this id is in flight, nor has one ended since the last `advance`."""

    def __init__(self, request_id: RequestId) -> None:
        super().__init__(f"request {request_id} is not in flight: it ended, was aborted or never came")
        self.request_id = request_id


class BadPodConfig(PodError):
    """The configuration describes no pod."""


class ClockWentBack(PodError):
    """The caller's clock ran backwards."""

    def __init__(self, now: Seconds, last: Seconds) -> None:
        super().__init__(f"now = {now} is before {last}, the time already reached: hand in a monotonic clock")
