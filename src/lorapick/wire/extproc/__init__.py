"""Envoy's ext_proc protocol as a conversation: messages in, commands out, no sockets.

Five words:

- *message*: one protobuf `ProcessingRequest` from the gateway.
- *command*: what the session asks its transport to do (`commands.py`): send, decide, tell, finish.
- *session*: one HTTP request's side of the conversation (`session.py`). One object per gRPC stream.
- *transport*: moves messages and performs commands (`live.extproc_server`; another may take its place).
- *directory*: what a session may ask of the picker without deciding anything: the models, any ready pod.

Nothing here knows gRPC, a clock, asyncio, or how a pod is chosen.
"""
