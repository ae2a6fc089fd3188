"""The API's call that creates many jobs at once."""
