"""SGLang's account of its own settings (`/server_info`, before 0.5.6 `/get_server_info`; read in 0.4.9 to 0.5.23).

In: the body. Out: `EngineSettings`. Not here: which adapters are in memory; SGLang tells that in `/v1/models`.

The body is the server's arguments with a few figures beside them. `max_loras_per_batch` counts the base model as one.
`max_loaded_loras` is null without a limit; `max_loras_per_batch` is there, and means nothing, when LoRA is off.
`lora_paths` lists the adapters of the start, as objects with `pinned` once
the server has read them; an adapter that is loaded and pinned later is in no list.
"""

from typing import Any

import msgspec

from lorapick.wire.engines.listing import EngineSettings
from lorapick.wire.models_list import MOST_MODELS


class EngineSettingsError(ValueError):
    """The body is no account of settings; the message says where it differs."""


class _Body(msgspec.Struct):
    enable_lora: bool | None = None
    max_loras_per_batch: int | None = None
    max_loaded_loras: int | None = None
    lora_paths: Any = None


_decoder = msgspec.json.Decoder(_Body)


def parse(body: bytes) -> EngineSettings:
    """Read one body.

    Raises:
        EngineSettingsError: not JSON, or a figure of another type.
    """
    try:
        found = _decoder.decode(body)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise EngineSettingsError(f"no settings of SGLang: {error}") from error
    slots = found.max_loras_per_batch
    if slots is None or slots < 1 or found.enable_lora is False:
        return EngineSettings()
    host = MOST_MODELS if found.max_loaded_loras is None else found.max_loaded_loras
    # With room for one, that one is the base model's or an adapter's.
    return EngineSettings(max_loras=max(1, slots - 1), max_cpu_loras=max(1, host), pinned=_pinned(found.lora_paths))


def _pinned(paths: Any) -> tuple[str, ...]:
    entries = paths if isinstance(paths, list) else list(paths.values()) if isinstance(paths, dict) else []
    named = (entry for entry in entries if isinstance(entry, dict) and entry.get("pinned") is True)
    return tuple(name for entry in named if isinstance(name := entry.get("lora_name"), str))
