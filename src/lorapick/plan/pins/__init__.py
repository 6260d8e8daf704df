"""Which adapters to pin, how many copies of each and on which pods, from counted request logs."""
