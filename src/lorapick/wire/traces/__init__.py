"""Readers of public traces: lines of bytes in, values out, one at a time."""
