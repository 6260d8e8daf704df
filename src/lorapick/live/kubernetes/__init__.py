"""The API server: what is watched there, what is written there, and who leads (see `start`)."""
