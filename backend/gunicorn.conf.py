# Loaded before the fork, a refused environment ends gunicorn itself, with its one line.
preload_app = True

# A request that waits for a hanging database must not keep the others waiting.
threads = 8

# Nobody uses it, and it would be made in a home directory that a container's user lacks.
control_socket_disable = True

# The most there is: a long query is the application's to answer, as JSON.
limit_request_line = 8190

# From loopback they would be believed, and a path that does not fit them is a bare 500.
forwarder_headers = ""
