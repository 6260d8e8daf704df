"""Bounds: what no policy can beat for an order of requests, so that a count of loads can be told from a good one."""
