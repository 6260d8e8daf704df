"""An emulated vLLM pod over HTTP: the pure pod model of `pod.engine`, run in real time behind vLLM's routes.

Made for demonstrations and tests: `serving(options)` runs one in this process, `lorapick pod` one in its own.
"""

from lorapick.live.podserver.adapters_file import read_adapters
from lorapick.live.podserver.app import build_app
from lorapick.live.podserver.options import OptionsError, PodServerOptions, numbered_adapters
from lorapick.live.podserver.serve import CannotListenError, PortInUseError, Served, serve, serving

__all__ = [
    "CannotListenError",
    "OptionsError",
    "PodServerOptions",
    "PortInUseError",
    "Served",
    "build_app",
    "numbered_adapters",
    "read_adapters",
    "serve",
    "serving",
]
