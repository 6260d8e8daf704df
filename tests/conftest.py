"""What every test needs."""

import asyncio

import hypothesis

from lorapick.sim.world import World

# pytest-asyncio asks for "the loop before mine", which makes one that nobody closes: a ResourceWarning at the end
# of the run. Saying that there is none keeps it from being made.
asyncio.set_event_loop(None)

# No timed assertions: a slow machine must not fail a property.
hypothesis.settings.register_profile("lorapick", deadline=None)
hypothesis.settings.load_profile("lorapick")

# Whoever plays a scenario checks all invariants on the way, whether or not the test asks for it.
World.check_every = 50
