"""Who waits at the picker, for how long, and who is refused."""
