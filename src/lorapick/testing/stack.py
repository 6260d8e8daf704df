"""A whole installation for tests: see `lorapick.live.stack`.

async with Stack(pods=4, adapters=12, policy="round-robin") as stack:
    await client.post(stack.endpoint + "/v1/completions", ...)
    stack.kill_pod(2)
    await stack.start_pod(2)
"""

from lorapick.live.stack import Stack, StackError
from lorapick.live.stack_options import StackOptions

__all__ = ["Stack", "StackError", "StackOptions"]
