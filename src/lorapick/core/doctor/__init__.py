"""Says what is wrong with a fleet, worst first, with the arithmetic, the remedies and what they cost."""
