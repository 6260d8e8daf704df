"""What adapters cost: swaps, slots, fleets, merging, and the bill. Pure functions from numbers to reports."""
