"""Hit ratio, swap rate, residency and P95 of a fleet, reckoned instead of simulated (see `predict`)."""
