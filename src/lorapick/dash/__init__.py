"""The live page: one snapshot feed and static files; reads published snapshots only."""
