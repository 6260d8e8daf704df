"""Laws of lengths."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.plan.datafiles import data_path, open_lines
from lorapick.sim.workload.chance import chance
from lorapick.sim.workload.lengths import (
    AnySizes,
    FixedLength,
    Length,
    LogNormalLength,
    SizePairs,
    Sizes,
    SizeSplit,
    TableLength,
    UniformLength,
    pairs_of,
    quantiles,
    sizes_at,
)
from lorapick.wire.traces.azure import azure_rows
from lorapick.wire.traces.cdf import cdf_points

MANY = 200_000


def draw(law):
    return quantiles(law, chance(1, "lengths").random(MANY))


def test_fixed():
    assert {*draw(FixedLength(7)).tolist()} == {7}


def test_uniform_has_every_length_as_often():
    counts = np.bincount(draw(UniformLength(3, 12)))
    assert counts[:3].sum() == 0
    assert len(counts) == 13
    # Five standard deviations of a binomial.
    assert np.abs(counts[3:] - MANY / 10).max() < 5 * math.sqrt(MANY * 0.09)


def test_lognormal_has_its_mean_and_cv():
    found = draw(LogNormalLength(800.0, 0.9))
    assert found.mean() == pytest.approx(800, rel=0.01)
    assert found.std() / found.mean() == pytest.approx(0.9, rel=0.03)
    assert np.median(found) == pytest.approx(800 / math.sqrt(1 + 0.9**2), rel=0.01)


def test_lognormal_is_clipped():
    found = draw(LogNormalLength(100.0, 3.0, low=16, high=500))
    assert (found.min(), found.max()) == (16, 500)


def test_a_table_is_followed():
    points = cdf_points(data_path("traces/fleetsim_azure_cdf.json").read_bytes())
    found = draw(TableLength(points))
    for tokens, share in points:
        assert (found <= tokens).mean() == pytest.approx(share, abs=0.005)


def test_a_gap_of_a_table_stays_empty():
    found = draw(TableLength(((10, 0.5), (90, 0.5), (100, 1.0))))
    assert ((found > 10) & (found < 90)).sum() == 0
    assert (found <= 10).mean() == pytest.approx(0.5, abs=0.01)


def test_pairs_keep_prompt_and_answer_together():
    rows = azure_rows(open_lines(data_path("traces/AzureLLMInferenceTrace_2023_conv.csv.zst")))
    pairs = pairs_of(rows, most=1000)
    assert len(pairs.rows) == 1000
    uniform = chance(1, "pairs").random(MANY)
    prompts, outputs = sizes_at(pairs, uniform, uniform)
    assert {*zip(prompts.tolist(), outputs.tolist(), strict=True)} <= {*pairs.rows}
    assert prompts.mean() == pytest.approx(np.mean([each[0] for each in pairs.rows]), rel=0.02)


def test_prompt_and_answer_share_a_total():
    prompts, outputs = sizes_at(SizeSplit(UniformLength(10, 1000), 0.8), *chance(1, "total").random((2, MANY)))
    assert (prompts + outputs).min() == 10
    assert (prompts + outputs).max() == 1000
    assert prompts.sum() / (prompts + outputs).sum() == pytest.approx(0.8, abs=0.001)
    tiny = sizes_at(SizeSplit(FixedLength(1), 1.0), np.zeros(1), np.zeros(1))
    assert [each.tolist() for each in tiny] == [[1], [1]]


LENGTHS = (
    st.builds(FixedLength, st.integers(1, 10**7))
    | st.tuples(st.integers(1, 10**4), st.integers(0, 10**4)).map(lambda pair: UniformLength(pair[0], sum(pair)))
    | st.builds(LogNormalLength, st.floats(1, 1e7), st.floats(0.01, 100))
    | st.lists(st.tuples(st.integers(1, 10**6), st.floats(0, 1)), min_size=1).map(
        lambda pairs: TableLength(
            (*zip(sorted({each[0] for each in pairs}), sorted(each[1] for each in pairs), strict=False), (10**7, 1.0))
        )
    )
)


@given(LENGTHS, st.lists(st.floats(0, 1, exclude_max=True), min_size=1))
def test_every_draw_is_a_length_and_more_draws_more(law, uniform):
    found = quantiles(law, np.array(sorted(uniform)))
    assert found.min() >= 1
    assert found.max() <= 10**7
    assert (np.diff(found) >= 0).all()


@given(LENGTHS, LENGTHS)
def test_laws_survive_a_file(prompt, output):
    sizes = Sizes(prompt, output)
    assert msgspec.json.decode(msgspec.json.encode(sizes), type=AnySizes) == sizes


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({"type": "fixed", "tokens": 0}, "tokens is 0; a whole number of tokens, 1 to 10,000,000"),
        ({"type": "uniform", "low": 9, "high": 8}, "high is 8; at least low, 9"),
        ({"type": "lognormal", "mean": 0, "cv": 1}, "mean is 0.0; tokens, 1 to 10,000,000"),
        ({"type": "lognormal", "mean": 1, "cv": 0}, "cv is 0.0; a coefficient of variation above 0"),
        ({"type": "table", "points": []}, r"points is \(\); at least one pair"),
        ({"type": "table", "points": [[5, 0.5], [5, 1]]}, r"point is \(5, 1.0\); tokens must rise"),
        ({"type": "table", "points": [[5, 0.5]]}, "the last share is 0.5; it must be 1"),
    ],
)
def test_what_is_no_law_is_refused(law, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(law, Length)


def test_pairs_need_rows():
    with pytest.raises(ValueError, match=r"rows is \(\); at least one"):
        pairs_of([])
    with pytest.raises(ValueError, match="output is 0"):
        SizePairs(((1, 0),))
