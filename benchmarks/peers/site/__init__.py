"""The smallest Django project, for the peers that are task backends of Django."""
