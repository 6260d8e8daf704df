"""Who listens by TLS, with what, and who must show something to be let in."""
