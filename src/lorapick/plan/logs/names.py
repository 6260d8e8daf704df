"""Which column is which, by name.

In: names of columns. Out: the one that is asked for, or guessed. Not here: what is in columns.

Names are compared without regard to case, spaces, dashes and underscores; of a dotted name the last part is looked at
too, so that `usage.prompt_tokens` is found as `prompt_tokens` is.
"""

import difflib
from collections.abc import Sequence


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ADAPTER = _words(
    "adapter adapter_name adapter_id lora lora_name lora_id lora_adapter lora_adapter_name lora_adapter_id "
    "lora_request peft_adapter target_model target_model_name resolved_target_model"
)
"""Columns of adapters, most likely first."""
MODEL = _words("gen_ai_request_model request_model model model_name model_id served_model served_model_name")
"""Columns that hold an adapter's name, or the base model's."""
TIME = _words(
    "arrived arrived_at arrival arrival_time arrival_timestamp arrival_ts received received_at received_time "
    "time timestamp ts datetime date_time start started started_at start_time start_timestamp start_ts "
    "time_iso8601 time_local event_time event_timestamp logged_at log_time created created_at created_time "
    "request_timestamp request_ts request_time time_seconds epoch date"
)
"""Columns of times; when a request came before when it was written down."""
PROMPT_TOKENS = _words(
    "prompt_tokens input_tokens num_prompt_tokens num_input_tokens n_prompt_tokens prompt_token_count "
    "input_token_count context_tokens request_tokens prompt_length input_length prompt_len input_len tokens_in"
)
"""As in OpenAI's `usage`, OpenTelemetry's conventions, and the public traces of Azure, BurstGPT and Mooncake."""
OUTPUT_TOKENS = _words(
    "output_tokens completion_tokens generated_tokens response_tokens num_output_tokens num_completion_tokens "
    "num_generation_tokens n_output_tokens completion_token_count output_token_count candidates_token_count "
    "output_length output_len generation_tokens tokens_out"
)


def guess(columns: Sequence[str], candidates: Sequence[str]) -> str | None:
    """The column of the first candidate that there is; of several, the least nested, then the first."""
    places = {_plain(name): place for place, name in reversed(list(enumerate(candidates)))}
    found = [
        (places[plain], part, name.count("."), order, name)
        for order, name in enumerate(columns)
        for part, plain in enumerate((_plain(name), _plain(name.rpartition(".")[2])))
        if plain in places
    ]
    return min(found)[-1] if found else None


def find(columns: Sequence[str], wanted: str) -> str | None:
    """The column of that name: letter by letter, else but for case."""
    if wanted in columns:
        return wanted
    return next((name for name in columns if name.casefold() == wanted.casefold()), None)


def listing(columns: Sequence[str], *, most: int = 40) -> str:
    """The columns in words."""
    if not columns:
        return "it has no columns"
    more = f" and {len(columns) - most:,} more" if len(columns) > most else ""
    return f"it has {', '.join(_short(name) for name in columns[:most])}{more}"


def near(columns: Sequence[str], wanted: str) -> list[str]:
    """At most three columns that look like a wrong name."""
    plain = {_plain(name): name for name in columns}
    found = difflib.get_close_matches(_plain(wanted), list(plain), n=3, cutoff=0.6)
    return [plain[each] for each in found]


def _short(name: str) -> str:
    name = name if name.isprintable() else repr(name)
    return name if len(name) <= 60 else f"{name[:57]}..."


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
