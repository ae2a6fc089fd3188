"""The API beyond the contract: what the dashboard shows and does, for programs.

Figures of the last hours, job types, groups of failures, the retry of many.
"""
