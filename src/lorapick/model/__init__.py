"""Frozen values and their units: what every other package speaks in.

Nothing here decides, reads a clock, opens a file or knows a protocol. Import from the modules
(`lorapick.model.events`, `lorapick.model.effects`, ...), not from this package.
"""
