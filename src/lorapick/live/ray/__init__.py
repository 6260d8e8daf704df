"""Ray Serve: a request router that sends each request where its multiplexed model is (docs/ray.md)."""
