"""The Envoy that `lorapick up` runs: its configuration, its process, its counters."""
