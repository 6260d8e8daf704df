"""What Envoy counted, read from its admin API.

In: the admin address. Out: `EnvoyCounters`. Not here: history; Envoy's counters begin at its start.
"""

import aiohttp
import msgspec

from lorapick.live.envoy.clusters import PODS
from lorapick.live.envoy.config import STAT_PREFIX
from lorapick.model.units import Seconds

_TIMEOUT: Seconds = 2.0


class EnvoyCounters(msgspec.Struct, frozen=True, kw_only=True):
    """Counts since Envoy's start. Envoy creates some only when they first move: those are 0 until then."""

    requests: int
    """Requests that clients sent."""
    without_picker: int
    """Of these, requests that went on without the picker's word (it was away, or too late)."""
    picker_streams: int
    picker_failures: int
    """ext_proc streams that ended in an error."""
    picker_timeouts: int
    """Answers that came later than the message timeout."""
    pod_requests: int
    """Requests sent to pods, retries included."""
    retries: int
    connect_failures: int
    """Connections to pods that failed."""
    answers_2xx: int
    answers_4xx: int
    answers_5xx: int


async def read_counters(admin: str) -> EnvoyCounters | None:
    """Return Envoy's counters; None when its admin API does not answer."""
    status, body = await admin_get(admin, "/stats?format=json&type=Counters")
    if status != 200:
        return None
    return counters_of(body)


def counters_of(body: bytes) -> EnvoyCounters:
    """Pick our counters out of Envoy's `/stats?format=json` page.

    Raises:
        msgspec.DecodeError: not such a page.
    """
    page = msgspec.json.decode(body, type=_StatsPage)
    values = {row.name: row.value for row in page.stats if row.name is not None}
    gateway, picker, pods = f"http.{STAT_PREFIX}.", f"http.{STAT_PREFIX}.ext_proc.picker.", f"cluster.{PODS}."
    return EnvoyCounters(
        requests=values.get(gateway + "downstream_rq_total", 0),
        without_picker=values.get(picker + "failure_mode_allowed", 0),
        picker_streams=values.get(picker + "streams_started", 0),
        picker_failures=values.get(picker + "streams_failed", 0),
        picker_timeouts=values.get(picker + "message_timeouts", 0),
        pod_requests=values.get(pods + "upstream_rq_total", 0),
        retries=values.get(pods + "upstream_rq_retry", 0),
        connect_failures=values.get(pods + "upstream_cx_connect_fail", 0),
        answers_2xx=values.get(gateway + "downstream_rq_2xx", 0),
        answers_4xx=values.get(gateway + "downstream_rq_4xx", 0),
        answers_5xx=values.get(gateway + "downstream_rq_5xx", 0),
    )


async def admin_get(admin: str, path: str) -> tuple[int | None, bytes]:
    """Ask the admin API at `unix:PATH` or `host:port`; the status is None when nobody answers."""
    socket = admin.removeprefix("unix:")
    over_unix = socket != admin
    connector = aiohttp.UnixConnector(path=socket) if over_unix else None
    url = f"http://{'envoy' if over_unix else admin}{path}"
    try:
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=_TIMEOUT)) as session:
            async with session.get(url) as response:
                return response.status, await response.read()
    except (aiohttp.ClientError, OSError, TimeoutError):
        return None, b""


class _Stat(msgspec.Struct):
    name: str | None = None
    value: int = 0


class _StatsPage(msgspec.Struct):
    stats: list[_Stat]
