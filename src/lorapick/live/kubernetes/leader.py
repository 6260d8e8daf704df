"""Who leads, by a Lease (`coordination.k8s.io/v1`): at most one replica at a time, and one soon after it is gone.

In: the Lease as it is read, the local clock. Out: the Lease as it should be; `leads`; calls when that changes.
Not here: what a leader does (see `live.fencing`, `statuses`).

Clocks of replicas are never compared. Who does not lead waits for `duration` since it *saw* the Lease change last. Who
leads counts from before it *asked* for its last renewal, and stops after `renew_within`, which is shorter, whether or
not an answer is still awaited: so its time is over before anybody else's begins. kubernetes-asyncio's election counts
from the answer and by the clock of the day, and cannot give the lead back; hence this one (ADR 0017).
"""

import asyncio
import logging
import os
import random
import socket
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from lorapick.live.kubernetes.client import ApiError, Client
from lorapick.model.settings import LeaderSettings
from lorapick.model.units import Seconds
from lorapick.wire.kubernetes.objects import look, moment, rfc3339

log = logging.getLogger(__name__)


def own_identity(environment: Mapping[str, str] = os.environ) -> str:
    """This process and no other: the pod's name, and a mark that a restart changes."""
    return f"{environment.get('POD_NAME') or socket.gethostname()}_{uuid.uuid4().hex[:8]}"


class _Seen(NamedTuple):
    """A Lease as it was last read, and when that first showed."""

    mark: tuple[object, ...]
    at: Seconds


class Leader:
    """One candidate."""

    def __init__(
        self,
        client: Client,
        settings: LeaderSettings,
        *,
        name: str,
        identity: str,
        clock: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        """Ask for nothing yet.

        Args:
            client: the API server; the Lease is in its namespace.
            settings: the times.
            name: of the Lease, unless the settings name it.
            identity: this replica's, unlike any other's.
            clock: monotonic seconds.
        """
        self.identity = identity
        self.holder: str | None = None
        """Who leads as far as is known; None: nobody does, or nobody knows."""
        self.problem: str | None = None
        """Why the Lease can be neither read nor written now."""
        self.on_change: Callable[[bool], None] = lambda _: None
        """Told when this replica begins or ceases to lead."""
        self.losses = 0
        """Times that the lead ended other than by `release`."""
        self._client = client
        self._settings = settings
        self._clock = clock
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{client.access.namespace}/leases"
        self._name = settings.lease or name
        self._seen: _Seen | None = None
        self._until = float("-inf")
        self._told = False
        self._random = random.Random()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def leads(self) -> bool:
        """Whether this replica leads at this moment; asked before everything that only a leader may do."""
        return self._clock() < self._until

    async def run(self) -> None:
        """Try until cancelled; then give the lead back."""
        try:
            while True:
                await self.attempt()
                jitter = 1 + 0.2 * self._random.random()
                await asyncio.sleep(self._settings.retry * jitter)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await asyncio.shield(asyncio.wait_for(self._release(), timeout=self._settings.retry + 1))

    async def attempt(self) -> None:
        """Renew, or become the leader if nobody is; change nothing if somebody else is."""
        asked = self._clock()
        try:
            held = await self._try(asked)
        except ApiError as error:
            self._failed(error)
        except Exception as error:
            # Whatever it is, the lead ends with its time, and requests are served.
            log.exception("the Lease was not looked at")
            self.problem = str(error) or type(error).__name__
        else:
            self._well()
            if held:
                self._until = asked + self._settings.renew_within
            elif self.holder != self.identity:
                self._until = float("-inf")
        self._tell()

    async def _try(self, asked: Seconds) -> bool:
        """Whether the Lease is ours now."""
        try:
            lease = await self._client.request("GET", f"{self._leases}/{self._name}")
        except ApiError as error:
            if error.status != 404:
                raise
            return await self._write("POST", self._leases, lease={"metadata": {"name": self._name}})
        holder = look(lease, "spec", "holderIdentity")
        self._see(lease)
        self.holder = holder if isinstance(holder, str) and holder else None
        if self.holder not in (None, self.identity) and not self._is_over(lease, now=asked):
            return False
        return await self._write("PUT", f"{self._leases}/{self._name}", lease=lease)

    def _see(self, lease: Mapping[str, Any]) -> None:
        spec = lease.get("spec")
        mark = tuple(look(spec, key) for key in ("holderIdentity", "renewTime", "acquireTime", "leaseTransitions"))
        if self._seen is None or self._seen.mark != mark:
            self._seen = _Seen(mark, self._clock())

    def _is_over(self, lease: Mapping[str, Any], *, now: Seconds) -> bool:
        """Whether its holder has not renewed for as long as it said, in our eyes."""
        seconds = look(lease, "spec", "leaseDurationSeconds")
        lasts = seconds if isinstance(seconds, int) and seconds > 0 else self._settings.duration
        return self._seen is not None and now >= self._seen.at + lasts

    async def _write(self, method: str, path: str, *, lease: Mapping[str, Any]) -> bool:
        """Ours when it is as it was when it was read: the server compares resource versions."""
        spec, now = look(lease, "spec") or {}, time.time()
        ours = look(spec, "holderIdentity") == self.identity
        changes = look(spec, "leaseTransitions")
        transitions = changes if isinstance(changes, int) else 0
        body = {
            **lease,
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "spec": {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": max(1, round(self._settings.duration)),
                "acquireTime": rfc3339(_since(spec, now) if ours else now, micro=True),
                "renewTime": rfc3339(now, micro=True),
                "leaseTransitions": transitions if ours or method == "POST" else transitions + 1,
            },
        }
        try:
            written = await self._client.request(method, path, body=body)
        except ApiError as error:
            if error.status != 409:
                raise
            return False  # somebody was faster; what was ours until then stays so
        self._see(written)
        self.holder = self.identity
        return True

    async def _release(self) -> None:
        """Let the next one begin at once. Whatever we led has ended before: see `live.fencing`."""
        if not self.leads:
            return
        self._until = float("-inf")
        self._told = False
        self.on_change(False)
        try:
            lease = await self._client.request("GET", f"{self._leases}/{self._name}")
            if look(lease, "spec", "holderIdentity") != self.identity:
                return
            spec = {**lease["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self._client.request("PUT", f"{self._leases}/{self._name}", body={**lease, "spec": spec})
            log.info("gave the lead back")
        except ApiError as error:
            log.warning("the lead could not be given back, so others wait for it to end: %s", error)

    def _failed(self, error: ApiError) -> None:
        if self.problem is None:
            hint = " (the Role must allow get, create and update of leases)" if error.status == 403 else ""
            log.error("Lease %s: %s%s", self._name, error, hint)
        self.problem = str(error)

    def _well(self) -> None:
        if self.problem is not None:
            log.info("Lease %s can be read and written again", self._name)
        self.problem = None

    def _tell(self) -> None:
        """Say what changed; and be back when the lead ends by itself, should a request hang until then."""
        leads = self.leads
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if leads:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, self._until - self._clock()), self._tell)
        if leads == self._told:
            return
        self._told = leads
        if leads:
            log.info("this replica leads now: it tells pods what to load, and writes status")
        else:
            self.losses += 1
            log.warning(
                "this replica leads no longer; %s", f"{self.holder} does" if self.holder else "nobody is known to"
            )
        self.on_change(leads)


def _since(spec: object, now: Seconds) -> Seconds:
    found = moment(look(spec, "acquireTime"))
    return now if found is None else found
