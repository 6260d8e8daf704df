"""Virtual clock, workloads and scenarios around the same core (arrives with the simulator)."""
