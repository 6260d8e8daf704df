"""What Envoy counted, read from its admin API.

In: the admin address. Out: `EnvoyCounters`. Not here: history; Envoy's counters begin at its start.
"""

import re
from urllib.parse import quote

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


_GATEWAY, _PICKER, _PODS = f"http.{STAT_PREFIX}.", f"http.{STAT_PREFIX}.ext_proc.picker.", f"cluster.{PODS}."
_NAMES = {
    "requests": _GATEWAY + "downstream_rq_total",
    "without_picker": _PICKER + "failure_mode_allowed",
    "picker_streams": _PICKER + "streams_started",
    "picker_failures": _PICKER + "streams_failed",
    "picker_timeouts": _PICKER + "message_timeouts",
    "pod_requests": _PODS + "upstream_rq_total",
    "retries": _PODS + "upstream_rq_retry",
    "connect_failures": _PODS + "upstream_cx_connect_fail",
    "answers_2xx": _GATEWAY + "downstream_rq_2xx",
    "answers_4xx": _GATEWAY + "downstream_rq_4xx",
    "answers_5xx": _GATEWAY + "downstream_rq_5xx",
}
"""Envoy's name of each of our fields."""
_PAGE = "/stats?format=json&type=Counters&filter=" + quote(f"^({'|'.join(map(re.escape, _NAMES.values()))})$")


async def read_counters(admin: str) -> EnvoyCounters | None:
    """Return Envoy's counters; None when its admin API does not answer, or knows neither our gateway nor our picker.

    Raises:
        msgspec.DecodeError: something else than Envoy answered.
    """
    status, body = await admin_get(admin, _PAGE)
    if status != 200:
        return None
    return counters_of(body)


def counters_of(body: bytes) -> EnvoyCounters | None:
    """Pick our counters out of Envoy's `/stats?format=json` page; None: it has not those that every gateway has.

    Raises:
        msgspec.DecodeError: not such a page.
    """
    page = msgspec.json.decode(body, type=_StatsPage)
    values = {row.name: row.value for row in page.stats if row.name is not None}
    if _NAMES["requests"] not in values or _NAMES["without_picker"] not in values:
        return None
    return EnvoyCounters(**{field: values.get(name, 0) for field, name in _NAMES.items()})


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
