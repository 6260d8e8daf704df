"""The pod model: what one model-server replica does, as a pure function of requests and time."""
