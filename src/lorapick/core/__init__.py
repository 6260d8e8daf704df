"""Decisions: pure functions of events and time. No I/O, clock, chance or logging."""
