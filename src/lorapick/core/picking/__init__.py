"""Filters, scorers and policies: one request and a view of the fleet to one Pick."""
