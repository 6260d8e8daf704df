"""Retention policies: who stays in a pod's adapter memory. See `model.retention` for what all of them are."""
