"""Fitting the pod model to measured runs, and saying how far off it is."""
