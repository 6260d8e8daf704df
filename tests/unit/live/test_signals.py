"""Signals as an event; afterwards the handlers are those from before, whatever left the loop."""

import asyncio
import signal

import pytest
import uvloop

from lorapick.live.signals import asked_to_stop


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_sets_the_event(number):
    with asked_to_stop() as stop:
        signal.raise_signal(number)
        async with asyncio.timeout(10):
            await stop.wait()


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_after_an_error_the_process_can_be_interrupted_as_before(run):
    async def refused() -> None:
        with asked_to_stop():
            assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            raise OSError("address in use")

    with pytest.raises(OSError, match="address in use"):
        run(refused())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
