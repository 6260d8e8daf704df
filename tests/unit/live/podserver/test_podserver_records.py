"""What the pod would have counted, as vLLM counts it."""

import pytest

from lorapick.live.podserver.clock import ModelClock
from lorapick.live.podserver.records import PodRecords
from lorapick.live.podserver.ticket import Ticket
from lorapick.pod.values import PodRequest


class ManualClock(ModelClock):
    """Model second 0 is unix second 0."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__(speed)
        self.started_wall = 0.0


def ticket(adapter: str | None, *, first: float | None = None, output: int = 5) -> Ticket:
    request = PodRequest(id="r", adapter=adapter, prompt_tokens=10, output_tokens=output)
    made = Ticket(request, arrived=1.0, finish_reason="length", streams=False)
    made.started_at = 2.0
    made.cached_tokens = 4
    made.first_token_at = first
    return made


def begin(records: PodRecords, adapter: str | None, at: float) -> Ticket:
    made = ticket(adapter)
    records.first_token(made, at)
    made.first_token_at = at
    return made


def test_an_adapter_shows_from_first_token_to_last_end_in_order_of_first_tokens() -> None:
    records = PodRecords(ManualClock(), 1024)
    series = records.lora_requests.series
    b1 = begin(records, "b", 3.0)
    a = begin(records, "a", 4.0)
    b2 = begin(records, "b", 5.0)
    records.ended(b1, 6.0, "length")
    records.ended(a, 7.0, "length")
    again = begin(records, "a", 8.0)
    records.left(b2, 9.0)
    records.ended(again, 10.0, "length")
    assert series == {"b": 7.0, "b,a": 8.999, "a": 9.999, "": 10.0}, "the last step is a millisecond before the end"


def test_a_queued_adapter_is_absent() -> None:
    records = PodRecords(ManualClock(), 1024)
    begin(records, "a", 3.0)
    records.left(ticket("queued"), 4.0)
    assert records.lora_requests.series == {"a": 4.0}


def test_the_base_model_shows_as_nobody() -> None:
    records = PodRecords(ManualClock(), 1024)
    begin(records, None, 3.0)
    assert records.lora_requests.series == {"": 3.0}


def test_stages_add_up_in_real_seconds() -> None:
    records = PodRecords(ManualClock(speed=10.0), 1024)
    made = begin(records, "a", 4.0)
    records.ended(made, 8.0, "length")

    def total(name: str) -> float:
        return records.histograms[name].total

    assert total("time_to_first_token_seconds") == pytest.approx(0.3)
    assert total("request_queue_time_seconds") == pytest.approx(0.1)
    assert total("request_prefill_time_seconds") == pytest.approx(0.2)
    assert total("request_decode_time_seconds") == pytest.approx(0.4)
    assert total("request_inference_time_seconds") == pytest.approx(0.6)
    assert total("e2e_request_latency_seconds") == pytest.approx(0.7)
    assert total("inter_token_latency_seconds") == pytest.approx(0.4)
    assert sum(records.histograms["inter_token_latency_seconds"].counts) == 4
    assert total("request_time_per_output_token_seconds") == pytest.approx(0.1)
    assert total("request_prefill_kv_computed_tokens") == 6.0


def test_one_token_has_no_gap() -> None:
    records = PodRecords(ManualClock(), 1024)
    made = ticket("a", output=1)
    records.first_token(made, 4.0)
    made.first_token_at = 4.0
    records.ended(made, 4.0, "stop")
    assert sum(records.histograms["inter_token_latency_seconds"].counts) == 0
    assert records.finished == {"stop": 1}


def test_a_failed_request_counts_as_an_error_and_in_no_histogram() -> None:
    records = PodRecords(ManualClock(), 1024)
    failed = ticket("a")
    failed.started_at = None
    records.ended(failed, 4.0, "error")
    assert records.finished == {"error": 1}
    assert sum(records.histograms["e2e_request_latency_seconds"].counts) == 0
