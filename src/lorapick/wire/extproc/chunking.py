"""Bodies in pieces that fit the protocol.

In: a whole body. Out: pieces of at most 62,000 bytes, the size that llm-d's endpoint picker keeps to (Envoy's
interface recommends at most 64 KiB per streamed message). Not here: messages around the pieces.
"""

MAX_CHUNK = 62_000


def chunks(body: bytes) -> list[bytes]:
    """The body in order; an empty body is one empty chunk, since the end of a stream needs a message."""
    if len(body) <= MAX_CHUNK:
        return [body]
    return [body[start : start + MAX_CHUNK] for start in range(0, len(body), MAX_CHUNK)]
