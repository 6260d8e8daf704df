"""Pods of a run by the part that they play.

In: rows of a report, one for each pod. Out: one for each role. Not here: measuring.
"""

from collections.abc import Sequence

from lorapick.model.pods import Role
from lorapick.sim.measures import GpuTime
from lorapick.sim.report import PodRow, SideRow


def sides_of(pods: Sequence[PodRow]) -> tuple[SideRow, ...]:
    """The pods of each role; nothing where all do both."""
    roles = [role for role in Role if any(each.role is role for each in pods)]
    if roles == [Role.BOTH]:
        return ()
    return tuple(_side(role, [each for each in pods if each.role is role]) for role in roles)


def _side(role: Role, pods: Sequence[PodRow]) -> SideRow:
    gpu = GpuTime()
    for each in pods:
        gpu = gpu.plus(each.gpu)
    return SideRow(
        role=role,
        pods=len(pods),
        swaps=sum(each.swaps for each in pods),
        loads=sum(each.loads for each in pods),
        hits=sum(each.hits for each in pods),
        misses=sum(each.misses for each in pods),
        gpu=gpu,
    )
