"""The commands of `run.py`. Standard library only: they run before anything is installed."""
