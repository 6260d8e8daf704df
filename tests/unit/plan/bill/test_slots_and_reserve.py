"""Slots: the article's counts, both sizes of a slot, what vLLM measured, what one more takes from the KV cache."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.bill.reserve import RANKS, kv_bytes_per_token, reserved
from lorapick.plan.bill.slot_check import MEASURED, check
from lorapick.plan.bill.slots import slots_report
from lorapick.plan.datafiles import data_path, open_lines
from lorapick.plan.sizes.models import read_model
from lorapick.plan.work import GIVEN

REPORT = slots_report({})
MIB = 2**20


def value(name, report=REPORT):
    return report[name].value


def test_the_articles_budget():
    assert value("room for slots") == 10_000_000_000
    assert [value(f"slots of {name}") for name in ("50 MB", "200 MB", "own 65.536 MB")] == [200, 50, 152]


def test_both_sizes_of_a_slot():
    assert (value("own bytes of an adapter"), value("of it linear layers")) == (65_536_000, 414_187_520)
    assert value("of it linear layers", slots_report({"max-rank": 64, "slots": 4})) == 1_656_750_080
    assert value("slots as reserved") == 10_000_000_000 // value("reserved per slot") == 23


def test_a_slots_formula_is_within_two_per_cent_of_what_was_measured():
    found = check(open_lines(data_path(MEASURED)))
    assert len(found) == 6
    assert [(each.model, each.max_rank, round(each.measured / MIB)) for each in found][:3] == [
        ("llama-3.1-8b", 8, 50),
        ("llama-3.1-8b", 16, 94),
        ("llama-3.1-8b", 32, 182),
    ]
    assert all(abs(each.error) < 0.02 and abs(each.kv_error) < 0.01 for each in found)


def test_the_error_is_reported():
    report = slots_report({}, measured=open_lines(data_path(MEASURED)))
    assert abs(report["formula's worst error, bytes"].value) < 0.02
    assert len(report.tables[1].rows) == 6


@pytest.mark.parametrize("line", ["", "llama-3.1-8b-instruct,8,x,1,1,1,1", "other,8,8,1,1,1,1"])
def test_a_damaged_table_is_refused(line):
    head = b"model,max_loras,max_lora_rank,model_load_GiB,kv_cache_tokens,single_req_tpot_ms,single_req_ttft_ms\n"
    with pytest.raises(ValueError, match="line 2 of calibration"):
        check([head, (line or ",").encode()])


def test_the_war_storys_sequences():
    assert value("sequences in 30 GB") == pytest.approx(180, abs=3)
    assert value("sequences in 28 GB") == pytest.approx(165, abs=3)
    assert value("4 slots more, own bytes") == pytest.approx(260e6, rel=0.01)
    assert value("4 slots more, reserved") < 2_000_000_000


def test_one_more_slot_takes_its_reservation_from_the_kv_cache():
    model = read_model("llama-3.1-8b")
    assert kv_bytes_per_token(model) == 131_072
    taken = value("KV beside 8 slots") - value("KV beside 9 slots", slots_report({"slots": 9}))
    assert taken == value("reserved per slot")
    assert value("one more slot: KV tokens") == taken / 327_680
    assert value("one more slot: KV blocks") == taken / 327_680 / 16


def test_chances_of_a_random_pod():
    chances = [value(f"random pod holds one of {count}") for count in (3, 12, 50)]
    assert chances == [1.0, 0.25, 0.06]
    assert chances[1] < 0.3 and chances[2] < 0.1


def test_another_models_weights_are_its_own():
    report = slots_report({}, model="llama-3.1-8b")
    assert value("base", report) == pytest.approx(16.06e9, rel=0.01)
    assert value("own bytes of an adapter", report) == 13_631_488
    assert all(each.article is None for each in report.figures)
    given = slots_report({"base": 8_000_000_000}, model="llama-3.1-8b")
    assert (value("base", given), given["base"].source) == (8_000_000_000, GIVEN)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"base": 140_000_000_000}, "exceed hbm 80 GB by 95 GB"),
        ({"slots": 100}, "at most 94 fit"),
        ({"max-rank": 20}, "take 32"),
        ({"max-rank": 1000}, "take 512"),
        ({"block": 0}, "block 0: it must be above 0"),
    ],
)
def test_impossible_budgets_say_what_exceeds_what(numbers, words):
    with pytest.raises(ValueError, match=words):
        slots_report(numbers)


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match=r"near: llama-3\.1-70b"):
        slots_report({}, model="llama-3.1-70bb")


@given(st.sampled_from(RANKS), st.sampled_from(["llama-3.1-8b", "qwen2.5-7b", "mixtral-8x7b"]))
def test_reservations_grow_with_the_rank(rank, name):
    model = read_model(name)
    assert reserved(model, 2 * rank).total == 2 * reserved(model, rank).total
    with_room = reserved(model, rank, extra_tokens=256)
    assert with_room.total >= reserved(model, rank).total
