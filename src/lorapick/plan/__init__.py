"""Sizes, budgets, fleet cost and the deployment gate (arrives with the planner)."""
