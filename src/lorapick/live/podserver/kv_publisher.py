"""Publishes the emulated pod's KV events over ZMQ, as vLLM does with `--kv-events-config`.

In: requests that have their first token. Out: one message for each that put blocks into the prefix cache.
Not here: the format (see `wire.kv_events`), the cache (see `pod.kv`).

The pod model tells which blocks of a prompt were new to its cache, not which it evicts: there are no `BlockRemoved`.
Blocks of generated tokens have no ids in the model, so those are not told either. `token_ids` is empty: the emulator
has no tokenizer.
"""

import errno

import zmq

from lorapick.live.podserver.ticket import Ticket
from lorapick.model.units import AdapterName, Seconds, Tokens
from lorapick.wire.kv_events import Stored, encode


class KvPublisher:
    """A PUB socket that binds."""

    def __init__(self, *, host: str, port: int, topic: str, block_size: Tokens) -> None:
        """Bind; port 0: any free one.

        Raises:
            OSError: the address cannot be had.
        """
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.PUB)
        self._socket.setsockopt(zmq.LINGER, 0)
        try:
            self._socket.bind(f"tcp://{host}:{port or '*'}")
        except zmq.ZMQError as error:
            self.close()
            raise OSError(error.errno or errno.EADDRNOTAVAIL, f"{error.strerror} ({host}:{port})") from None
        self.endpoint: str = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        """Where subscribers connect."""
        self._topic = topic
        self._block_size = block_size
        self._sequence = 0
        self._ids: dict[AdapterName, int] = {}

    def stored(self, ticket: Ticket, *, wall: Seconds) -> None:
        """A request has its first token: its prompt's blocks are in the cache. `wall`: Unix time."""
        request = ticket.request
        hits = ticket.cached_tokens // self._block_size
        blocks = request.blocks[hits:]
        if not blocks:
            return
        name = request.adapter
        number = None if name is None else self._ids.setdefault(name, len(self._ids) + 1)
        event = Stored(
            block_hashes=list(blocks),
            parent_block_hash=request.blocks[hits - 1] if hits else None,
            token_ids=[],
            block_size=self._block_size,
            lora_id=number,
            medium="GPU",
            lora_name=name,
            extra_keys=[None if name is None else (name,) for _ in blocks],
        )
        frames = encode(self._sequence, [event], topic=self._topic, wall=wall)
        self._sequence += 1
        self._socket.send_multipart(frames, zmq.NOBLOCK)

    def restarted(self) -> None:
        """The process is another one: its numbers begin anew."""
        self._sequence = 0
        self._ids.clear()

    def close(self) -> None:
        """Stop publishing."""
        self._socket.close()
        self._context.term()
