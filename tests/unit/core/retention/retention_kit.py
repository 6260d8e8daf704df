"""Policies for tests, and what happens to them."""

from lorapick.core.retention.policies import make_retention
from lorapick.model.retention import RetentionFacts
from lorapick.model.settings import RetentionSettings

MINUTE = 60.0


def policy(name, facts=None, **settings):
    """A policy by its name; `facts` by adapter."""
    known = facts or {}
    return make_retention(
        RetentionSettings(policy=name, **settings), lambda adapter: known.get(adapter, RetentionFacts())
    )


def asked(retention, stream):
    """Requests in order of time; returns the time of the last."""
    for now, adapter in sorted(stream):
        retention.used(adapter, now)
    return max(now for now, _ in stream)


def steady(adapter, *, gap, begin=0.0, until):
    """A request every `gap` seconds."""
    return [(begin + gap * i, adapter) for i in range(int((until - begin) / gap))]


def batch(adapter, *, at, count=200, over=2.0):
    """The blip of R3.2."""
    return [(at + over * i / count, adapter) for i in range(count)]
