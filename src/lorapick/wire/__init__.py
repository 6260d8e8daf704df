"""Bytes or protobuf to model values and back. No sockets, files or clocks."""
