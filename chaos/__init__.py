"""Faults for a queue at work, and the proof that it kept its promises."""
