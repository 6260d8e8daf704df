"""Shares of adapters."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lorapick.sim.workload.chance import chance
from lorapick.sim.workload.popularity import (
    EqualShares,
    Popularity,
    PowerLaw,
    TopShare,
    Weights,
    Zipf,
    require_fit,
    shares,
    zipf_exponent,
)


def test_uniform():
    assert shares(EqualShares(), 4).tolist() == [0.25] * 4


def test_zipf():
    assert shares(Zipf(1.0), 4) == pytest.approx(np.array([12, 6, 4, 3]) / 25)
    assert shares(Zipf(0.0), 4) == pytest.approx(0.25)


def test_top():
    # saas-50: the top 10 of 50 have 70 %.
    found = shares(TopShare(10, 0.7), 50)
    assert found[:10] == pytest.approx(0.07)
    assert found[10:] == pytest.approx(0.3 / 40)
    assert shares(TopShare(2, 1.0), 2) == pytest.approx(0.5)


def test_weights_are_shares():
    assert shares(Weights((3.0, 0.0, 1.0)), 3).tolist() == [0.75, 0.0, 0.25]
    assert shares(Weights((1e308, 1e308)), 2).tolist() == [0.5, 0.5]


@pytest.mark.parametrize("alpha", [0.1, 0.6, 1.0, 3.0])
def test_the_power_law_is_numpys(alpha):
    drawn = (chance(1, "power").power(alpha, 200_000) * 20).astype(int)
    counted = np.bincount(drawn, minlength=20) / 200_000
    assert shares(PowerLaw(alpha), 20) == pytest.approx(counted, abs=0.004)


def test_an_exponent_for_a_share_of_the_top():
    s = zipf_exponent(50, top=10, share=0.7)
    assert shares(Zipf(s), 50)[:10].sum() == pytest.approx(0.7)
    assert zipf_exponent(50, top=10, share=0.2) == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(ValueError, match=r"share is 0.1; from 0.2 \(uniform\) to below 1 for the first 10 of 50"):
        zipf_exponent(50, top=10, share=0.1)
    with pytest.raises(ValueError, match="share is 1"):
        zipf_exponent(50, top=50, share=1.0)


LAWS = st.one_of(
    st.just(EqualShares()),
    st.builds(Zipf, st.floats(0, 20)),
    st.builds(PowerLaw, st.floats(0.01, 100)),
    st.builds(TopShare, st.integers(1, 300), st.floats(0, 1)),
)


@given(LAWS, st.integers(300, 400))
def test_shares_add_up(law, count):
    found = shares(law, count)
    assert len(found) == count
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)
    assert msgspec.convert(msgspec.to_builtins(law), Popularity) == law


@pytest.mark.parametrize(
    ("law", "message"),
    [
        ({"type": "zipf", "s": -1}, "s is -1.0; an exponent from 0"),
        ({"type": "top", "top": 0, "share": 0.5}, "top is 0; at least 1 adapter"),
        ({"type": "top", "top": 1, "share": 1.5}, "share is 1.5; a share from 0 to 1"),
        ({"type": "weights", "values": [0, 0]}, "0 or more each, and one above 0"),
        ({"type": "weights", "values": [1, -1]}, "0 or more each"),
        ({"type": "power", "alpha": 0}, "alpha is 0.0; above 0"),
    ],
)
def test_what_is_no_law_is_refused(law, message):
    with pytest.raises(msgspec.ValidationError, match=message):
        msgspec.convert(law, Popularity)


def test_a_law_must_fit_the_number_of_adapters():
    with pytest.raises(ValueError, match="number of weights is 2; one per adapter: 3"):
        require_fit(Weights((1.0, 2.0)), 3)
    with pytest.raises(ValueError, match="top is 4; at most the number of adapters, 3"):
        require_fit(TopShare(4, 0.5), 3)
