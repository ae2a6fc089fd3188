# Loaded before the fork, a refused environment ends gunicorn itself, with its one line.
preload_app = True
