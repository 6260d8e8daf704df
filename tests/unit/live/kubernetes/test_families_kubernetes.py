"""docs/kubernetes.md has every family about the API server, and no other."""

import re
from pathlib import Path

from lorapick.live.kubernetes.counts import KubernetesCounts
from lorapick.live.kubernetes.families import KubernetesFamilies

PAGE = Path(__file__).parents[4] / "docs" / "kubernetes.md"


def test_every_family_is_documented():
    documented = set(re.findall(r"`(lorapick_(?:kubernetes|leader)\w*)`", PAGE.read_text(encoding="utf-8")))
    found = KubernetesFamilies(KubernetesCounts(), watches=lambda: (), leader=None).collect()
    assert documented == {family.name + ("_total" if family.type == "counter" else "") for family in found}
