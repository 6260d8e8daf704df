"""Tables of measured runs."""

import pytest
from calibration_kit import shipped
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.calibration.runs import MOST_REQUESTS, TableError, read_runs, read_slot_costs

HEAD = (
    b"model,adapter_rates_req_s,max_loras,num_adapters_max_cpu_loras,max_rank,completed,duration_s,req_s,out_tok_s,"
    b"in_tok_s,mean_ttft_ms,p99_ttft_ms,mean_tpot_ms,p99_itl_ms\n"
)
LINE = b"llama-3.1-8b-instruct,0.1_0.05_0.025,8,16,16,3397,3600.01,0.94,190.72,202.03,39.96,68.44,15.16,25.77\n"
SLOT_HEAD = b"model,max_loras,max_lora_rank,model_load_GiB,kv_cache_tokens,single_req_tpot_ms,single_req_ttft_ms\n"
COLUMNS = HEAD.decode().strip().split(",")


def changed(column, value):
    """A table whose one line has another value in a column."""
    cells = LINE.decode().strip().split(",")
    cells[COLUMNS.index(column)] = value
    return [HEAD, ",".join(cells).encode() + b"\n"]


def test_a_run_has_what_its_line_says():
    (run,) = read_runs([HEAD, LINE])
    assert (run.line, run.slots, run.adapters, run.rank) == (2, 8, 16, 16)
    assert (run.ttft, run.tpot) == pytest.approx((0.03996, 0.01516))
    assert run.name == "llama-3.1-8b-instruct 0.1_0.05_0.025 8/16 r16"


def test_what_follows_from_a_line():
    (run,) = read_runs([HEAD, LINE])
    assert [run.rate_of(adapter) for adapter in range(4)] == [0.1, 0.05, 0.025, 0.1]
    assert run.offered == pytest.approx(5 * 0.175 + 0.1)
    assert run.batch == pytest.approx(190.72 * 0.01516)
    assert not run.overloaded
    assert read_runs(changed("req_s", "0.92"))[0].overloaded


def test_layers_are_known_or_given():
    assert read_runs([HEAD, LINE])[0].layers == 32
    other = LINE.replace(b"llama-3.1-8b-instruct", b"mine")
    with pytest.raises(
        TableError, match=r"line 2: layers of model 'mine': are known of llama.*; add a column `layers`"
    ):
        read_runs([HEAD, other])
    assert read_runs([b"layers," + HEAD, b"40," + other])[0].layers == 40


def test_the_shipped_tables():
    runs, costs = shipped()
    assert len(runs) == 151 and len({run.group for run in runs}) == 4
    assert len(costs) == 84
    assert sum(cost.kv_tokens is None for cost in costs.values()) > 0
    assert all(costs[run.model, run.slots, run.rank].kv_tokens for run in runs)


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("max_loras", "8.5", "line 2, column max_loras: '8.5' is not a whole number; correct the line or take it out"),
        ("req_s", "", "line 2, column req_s: '' is not a number above 0, at most 1,000,000; correct"),
        ("mean_ttft_ms", "nan", "column mean_ttft_ms: 'nan' is not a number above 0, at most 1,000,000,000"),
        ("mean_tpot_ms", "-1", "'-1' is not a number above 0"),
        ("adapter_rates_req_s", "0.1__2", "column adapter_rates_req_s: '0.1__2' is not a number above 0"),
        ("num_adapters_max_cpu_loras", "1e300", "'1e300' is not a number above 0, at most 10,000"),
        ("adapter_rates_req_s", "9999", f"are too many; at most {MOST_REQUESTS:,.0f} can be played"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(column, value, words):
    with pytest.raises(TableError) as caught:
        read_runs(changed(column, value))
    assert words in str(caught.value)


def test_a_missing_column_and_a_short_line_are_named():
    with pytest.raises(TableError, match="line 1: column adapter_rates_req_s is missing; needed are model, "):
        read_runs([b"model,a\n", b"x,1\n"])
    with pytest.raises(TableError, match="line 3: too short, column max_rank is missing"):
        read_runs([HEAD, LINE, b"llama,0.1,8,16\n"])
    with pytest.raises(TableError, match="line 1: column model is missing"):
        read_runs([])


def test_an_engine_that_did_not_start_has_no_memory():
    costs = read_slot_costs(
        [SLOT_HEAD, b"qwen-2.5-7b-instruct,128,32,37.7644,,,\n", b"qwen-2.5-7b-instruct,8,8,15.3,305104,12.988,19.88\n"]
    )
    assert costs["qwen-2.5-7b-instruct", 128, 32].kv_tokens is None
    assert costs["qwen-2.5-7b-instruct", 8, 8].tpot == pytest.approx(0.012988)


def refusal(read, lines):
    """What a reader says against these lines; None: nothing."""
    try:
        read(lines)
    except TableError as error:
        return str(error)
    return None


@given(st.sampled_from(COLUMNS), st.text(max_size=12))
def test_any_cell_is_read_or_refused(column, value):
    words = refusal(read_runs, changed(column, value))
    assert words is None or words.startswith("line ")


@given(st.lists(st.one_of(st.just(HEAD), st.just(LINE), st.binary(max_size=60)), max_size=5))
def test_any_bytes_are_read_or_refused(lines):
    for read in (read_runs, read_slot_costs):
        words = refusal(read, lines)
        assert words is None or words.startswith("line ")
