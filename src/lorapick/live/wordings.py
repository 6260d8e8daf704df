"""Puts the words that a pod's engine wants into an answer of the core, for requests of adapters.

In: a Dispatch, the pods, where adapters are. Out: the Dispatch with a `Wording`, or a Reject that says why not.
Not here: the words themselves (see `wire.asking`), bodies (see `wire.extproc`).

One body goes to the pod and to its fallbacks, so only those fallbacks stay that are asked in the same words: a fleet of
several engines falls back within one engine.
"""

import logging
from collections.abc import Callable

import msgspec

from lorapick.model.effects import Dispatch, Reject
from lorapick.model.pods import Engine, Pod
from lorapick.model.reasons import Reason
from lorapick.model.requests import Target, Wording
from lorapick.model.units import AdapterName, PodName
from lorapick.wire.asking import WordingError, wording

log = logging.getLogger(__name__)
REFUSES_UNKNOWN = (Engine.VLLM, Engine.TRITON, Engine.LORAX)
"""Engines that refuse a name they do not serve; the others answer with the base model."""
_SAYS_400 = (Engine.SGLANG, Engine.TRITON)
_MOST_LOGGED = 1024
"""Adapters whose problem is remembered as told."""


class Wordings:
    """How pods are asked for adapters."""

    def __init__(self, find: Callable[[PodName], Pod | None]) -> None:
        """`find`: the pod of a name; None: it is gone."""
        self._find = find
        self._told: set[AdapterName] = set()
        self.path_of: Callable[[AdapterName], str | None] = lambda _: None
        """The path that pods are told for an adapter; None: nobody knows it, or they may not be told."""

    def worded(self, answer: Dispatch) -> Dispatch | Reject:
        """The answer as it is to be carried out; the same one where every pod is asked by name alone."""
        adapter = answer.pick.adapter
        if adapter is None:
            return answer
        try:
            words = self._of(answer.target, adapter)
        except WordingError as error:
            return self._refused(answer, adapter, error=error)
        targets = [target for target in answer.fallbacks if self._same(target, adapter, words=words)]
        if words is None and len(targets) == len(answer.fallbacks):
            return answer
        return msgspec.structs.replace(answer, wording=words, fallbacks=tuple(targets))

    def may_be_unknown(self, name: PodName, status: int | None) -> bool:
        """Whether a pod that answered an adapter's request so may have said that it does not serve the adapter."""
        if status != 400:
            return status == 404
        pod = self._find(name)
        return pod is not None and pod.engine in _SAYS_400

    def _of(self, target: Target, adapter: AdapterName) -> Wording | None:
        pod = self._find(target.pod)
        if pod is None or pod.engine is Engine.VLLM:
            return None
        return wording(pod, adapter, source=self.path_of(adapter))

    def _same(self, target: Target, adapter: AdapterName, *, words: Wording | None) -> bool:
        try:
            return self._of(target, adapter) == words
        except WordingError:
            return False

    def _refused(self, answer: Dispatch, adapter: AdapterName, *, error: WordingError) -> Reject:
        if adapter not in self._told and len(self._told) < _MOST_LOGGED:
            self._told.add(adapter)
            log.warning("%s cannot be asked for %s: %s", answer.target.pod, adapter, error)
        return Reject(
            cause=answer.cause,
            request_id=answer.request_id,
            status=503,
            reason=Reason.ADAPTER_UNREGISTERED,
            message=f"{answer.target.pod} cannot be asked for {adapter}: {error}",
            pick=answer.pick,
        )
