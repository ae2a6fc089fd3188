"""Measurements; each prints how it was taken."""
