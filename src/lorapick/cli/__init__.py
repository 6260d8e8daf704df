"""The command line: parse, build, call. No logic of its own."""
