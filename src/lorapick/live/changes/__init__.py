"""Changes that operators make to a running picker (see `live.driver_operations`)."""
