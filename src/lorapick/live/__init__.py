"""Asyncio shells around the decision core: sockets, processes, clocks. The only package that performs effects."""
