"""Prometheus rules for what shows thrash as thrash: records of the useful ratios, and an alert for each threshold."""

from lorapick.dash.rules.document import RULES_ONLY, Rule, alert_words, rules_document
from lorapick.dash.rules.thresholds import Thresholds

__all__ = ["RULES_ONLY", "Rule", "Thresholds", "alert_words", "rules_document"]
