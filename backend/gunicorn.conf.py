# Loaded before the fork, a refused environment ends gunicorn itself, with its one line.
preload_app = True

# A request that waits for a hanging database must not keep the others waiting.
threads = 8

# Nobody uses it, and it would be made in a home directory that a container's user lacks.
control_socket_disable = True
