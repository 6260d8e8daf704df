"""Prompts that are prefilled elsewhere: how many, and how long."""

import pytest

from lorapick.core.placement.prompts import MOST, Mean, Prompts, tokens_of
from lorapick.model.requests import Request


def of(*tokens, least=0):
    prompts = Prompts()
    prompts.least = least
    for each in tokens:
        prompts.came("x", each)
    return prompts.mean("x")


def test_nothing_is_known_at_first_and_by_prompts_of_unknown_length():
    assert of() is None and of(None) is None


def test_the_mean_follows_what_comes():
    assert of(100) == Mean(1.0, 100.0)
    assert of(*[100] * 10, *[300] * 200) == pytest.approx(Mean(1.0, 300.0), rel=1e-3)


def test_short_prompts_count_in_the_share_and_not_in_the_length():
    found = of(*[20, 1000] * 200, least=256)
    assert found.share == pytest.approx(0.5, abs=0.05) and found.tokens == pytest.approx(1000.0)
    assert of(20, least=256) == Mean(0.0, 0.0)


def test_of_whom_nothing_is_known_all_others_tell():
    prompts = Prompts()
    prompts.came("x", 100)
    assert prompts.mean("y") == Mean(1.0, 100.0)


def test_only_so_many_are_remembered():
    prompts = Prompts()
    for number in range(MOST + 10):
        prompts.came(f"t{number}", 1000 if number < 20 else 10)
    assert prompts.mean("t0") != Mean(1.0, 1000.0) and prompts.mean(f"t{MOST}") == Mean(1.0, 10.0)


def test_bytes_stand_for_tokens():
    assert tokens_of(Request(id="r", model="m", prompt_bytes=401)) == 101
