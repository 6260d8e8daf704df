"""JSON responses, encoded by msgspec: compact, as vLLM's are.

In: documents. Out: starlette responses. Not here: what they say.
"""

import msgspec
from starlette.responses import Response


class MsgspecResponse(Response):
    """A JSON body."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        """Encode."""
        return msgspec.json.encode(content)
