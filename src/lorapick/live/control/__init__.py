"""Tell pods what no request asks for: load an adapter, unload it, make its name known, keep it in use.

`PodControl` takes the commands and gives the events; `vllm` and `sglang` know what each engine wants to be told and
what its answers mean; `sources` says where pods may be told to load from; `door` is one pod over HTTP; `line` is who
waits; `counts` is what came of it all.
"""

from lorapick.live.control.counts import ControlCounts
from lorapick.live.control.podcontrol import PodControl, Timeouts
from lorapick.live.control.sources import AllowedSources, StaticSources

__all__ = ["AllowedSources", "ControlCounts", "PodControl", "StaticSources", "Timeouts"]
