"""Virtual clock, workloads and scenarios around the same decision core and pod model that run live. No I/O."""
