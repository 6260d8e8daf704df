"""What every test needs."""

import asyncio

# pytest-asyncio asks for "the loop before mine", which makes one that nobody closes: a ResourceWarning at the end
# of the run. Saying that there is none keeps it from being made.
asyncio.set_event_loop(None)
