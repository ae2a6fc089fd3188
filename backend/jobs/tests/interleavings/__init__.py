"""Two or three sessions, driven through every order of their steps."""
