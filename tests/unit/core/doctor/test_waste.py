"""Slots that serve nobody."""

from pictures_kit import ADAPTERS, adapter, checks, findings, healthy, pod

FILES = [adapter(number) for number in range(ADAPTERS)]


def test_the_same_weights_under_several_names_are_told():
    same = [adapter(0), adapter(1, fingerprint="f0"), adapter(2, fingerprint=None, source="/x"), *FILES[3:]]
    found = findings(healthy(adapters=same))["duplicates"]
    assert found.what == "1 adapter more than there are weights are in slots: a00, a01"
    assert found.arithmetic == ("a00 = a01",)


def test_names_that_hold_no_slot_waste_none():
    assert checks(healthy(adapters=[adapter(0, slots=0), adapter(1, fingerprint="f0"), *FILES[2:]])) == []


def test_without_fingerprints_the_source_counts():
    same = [adapter(0, fingerprint=None, source="/x"), adapter(1, fingerprint=None, source="/x"), *FILES[2:]]
    assert checks(healthy(adapters=same)) == ["duplicates"]
    unknown = [adapter(0, fingerprint=None, source=None), adapter(1, fingerprint=None, source=None), *FILES[2:]]
    assert checks(healthy(adapters=unknown)) == []


def test_slots_for_ranks_that_nobody_has_are_told():
    wide = [pod(number, max_rank=64) for number in range(8)]
    found = findings(healthy(pod_rows=wide))["rank"]
    assert found.what.startswith("slots are reserved for rank 64, and the highest in use is 16: in the same memory")
    assert found.arithmetic == ("max_lora_rank 64 / highest rank 16 = 4: 8 slots could be 32",)


def test_a_rank_that_is_used_or_unknown_is_no_waste():
    wide = [pod(number, max_rank=64) for number in range(8)]
    assert checks(healthy(pod_rows=wide, adapters=[adapter(0, rank=64), *FILES[1:]])) == []
    assert checks(healthy(pod_rows=wide, adapters=[adapter(0, rank=None), *FILES[1:]])) == []
    assert checks(healthy(pod_rows=[pod(number, max_rank=31) for number in range(8)])) == []
