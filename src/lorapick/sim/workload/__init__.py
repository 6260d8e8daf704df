"""Workloads: when requests come, for which adapter, how long they are. Pure and seeded; see `spec` and `stream`."""
