from lorapick.model.retention import RetentionFacts
from lorapick.model.tiers import Tier


def test_what_a_loss_costs_depends_on_where_it_goes():
    facts = RetentionFacts(from_cpu=0.008, from_disk=0.5)
    assert facts.reload(Tier.CPU) == 0.008
    assert facts.reload(Tier.DISK) == 0.5
    assert facts.reload(Tier.UNREGISTERED) == 0.5
