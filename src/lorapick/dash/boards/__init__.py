"""Grafana dashboards, built with Grafana's own builders, so that their JSON is what its schema says."""

from lorapick.dash.boards.board import dashboard_json

__all__ = ["dashboard_json"]
