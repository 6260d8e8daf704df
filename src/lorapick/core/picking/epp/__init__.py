"""Scheduling profiles of llm-d's `EndpointPickerConfig`: `policy.ProfilePolicy` runs them, `tables` has the plugins."""
