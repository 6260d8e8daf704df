"""The tables of plugins say what the catalogue of the configuration says."""

import pytest

from lorapick.core.picking.epp.tables import FILTERS, OWN, PICKERS, SCORERS, make_filter, make_scorer
from lorapick.model.profiles import PluginSpec
from lorapick.model.settings import PickingSettings
from lorapick.wire.config.epp import TYPES, Kind, Support
from lorapick.wire.config.epp.profiles import NOT_ARGUMENTS
from lorapick.wire.config.epp.reading import MissingParameters

RUNS = {name: each for name, each in TYPES.items() if each.support is not Support.REFUSED}


def of(kind):
    return {name for name, each in RUNS.items() if kind in each.kinds}


def test_every_type_that_is_taken_runs_and_no_other():
    assert set(FILTERS) == of(Kind.FILTER)
    assert set(SCORERS) | set(OWN) == of(Kind.SCORER)
    assert set(PICKERS) == of(Kind.PICKER)


EXAMPLES = {
    "by-label": {"label": "k", "values": (), "without": False},
    "endpoint-attribute-filter": {"compare": "LessThan", "value": 0.9, "passes": True, "fall_back": False},
    "endpoint-attribute-scorer": {"lower": True, "least": None, "most": None},
    "header-label-affinity-scorer": {"header": "h", "label": "k"},
    "utilization-filter": {"conditions": [("waiting-queue", 1.0)], "fall_back": False},
}


@pytest.mark.parametrize("name", [*FILTERS, *SCORERS, *OWN])
def test_defaults_of_the_catalogue_are_arguments_of_what_runs(name):
    try:
        parameters = TYPES[name].read(None)
    except MissingParameters:
        parameters = EXAMPLES[name]
    parameters = {key: value for key, value in parameters.items() if key not in NOT_ARGUMENTS}
    plugin = PluginSpec(type=name, name=name, parameters=parameters)
    if name in FILTERS:
        assert callable(make_filter(plugin).keep)
    if name in SCORERS or name in OWN:
        assert callable(make_scorer(plugin, PickingSettings()).values)
