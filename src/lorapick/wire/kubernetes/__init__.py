"""Kubernetes objects, as the API server's JSON has them, to values of `model`, and back for status and events.

In: dicts. Out: values; or `ObjectError` that names the object's field, what stands there and what would be right.
Not here: the API server (see `live.kubernetes`).
"""
