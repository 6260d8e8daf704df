"""Every plugin says what it reads and needs, so that explanations have it and nothing else is collected."""

import pytest

from lorapick.core.frozen import FrozenView
from lorapick.core.picking.epp.facts import COLD, IN_FLIGHT, TOKENS_IN_FLIGHT
from lorapick.core.picking.epp.tables import OWN, make_filter, make_scorer
from lorapick.core.picking.query import Query
from lorapick.model.profiles import PluginSpec
from lorapick.model.settings import PickingSettings
from lorapick.testing.profiles import book_with, profile
from lorapick.wire.config.epp import TYPES, Kind, Support
from lorapick.wire.config.epp.profiles import NOT_ARGUMENTS
from lorapick.wire.config.epp.reading import MissingParameters

EXAMPLES = {
    "by-label": {"label": "k", "values": (), "without": True},
    "endpoint-attribute-filter": {"compare": "LessThan", "value": 0.9, "passes": True, "fall_back": False},
    "endpoint-attribute-scorer": {"lower": True, "least": None, "most": None},
    "header-label-affinity-scorer": {"header": "h", "label": "k"},
    "utilization-filter": {"conditions": [("waiting-queue", 1.0), ("running-requests", 1.0)], "fall_back": False},
}


def plugins():
    for name, each in TYPES.items():
        if each.support is Support.REFUSED:
            continue
        for kind in (Kind.FILTER, Kind.SCORER):
            if kind in each.kinds:
                yield name, kind


def made(name, kind):
    try:
        parameters = TYPES[name].read(None)
    except MissingParameters:
        parameters = EXAMPLES[name]
    spec = PluginSpec(type=name, name=name, parameters={k: v for k, v in parameters.items() if k not in NOT_ARGUMENTS})
    return make_filter(spec) if kind is Kind.FILTER else make_scorer(spec, PickingSettings())


@pytest.mark.parametrize(("name", "kind"), [*plugins()])
def test_a_frozen_view_of_what_it_reads_is_enough(name, kind):
    plugin = made(name, kind)
    assert set(plugin.needs) <= {IN_FLIGHT, TOKENS_IN_FLIGHT, COLD}
    columns = book_with(profile(), pods="abc").fleet.state.columns
    query = Query("r", "legal")
    query.codes = columns.adapters["legal"]
    view = FrozenView(columns, "legal", reads=plugin.reads)
    if kind is Kind.FILTER:
        found = [plugin.keep(query, each, rows=[0, 2]) for each in (columns, view)]
        assert set(found[0]) <= {0, 2}
    else:
        found = [plugin.values(query, each, rows=[0, 2]) for each in (columns, view)]
        assert len(found[0]) == 2 and all(0.0 <= value <= 1.0 for value in found[0])
        assert plugin.aware is (name in OWN)
    assert found[0] == found[1]
