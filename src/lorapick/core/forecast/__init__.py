"""Forecasts of who is asked for next: demand history, models, their scores, and whom to hold."""
