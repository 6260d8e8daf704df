"""Helpers for tests, shipped: manual clock, in-memory fleets, Hypothesis strategies."""
