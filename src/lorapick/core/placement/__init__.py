"""Retention, suggestions and the guard that disposes of them."""
