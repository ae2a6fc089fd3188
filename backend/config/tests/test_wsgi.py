"""What reaches the entry point before any middleware does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[2]

# In a process of its own, since importing the entry point sets Django up as a server.
SCRIPT = """
import io, sys
from config.wsgi import application
answers = []
def start_response(status, headers, exc_info=None):
    answers.append(status)
environ = {
    "REQUEST_METHOD": "POST", "PATH_INFO": "/api/no-such-call/", "QUERY_STRING": "a=b",
    "SERVER_NAME": "localhost", "SERVER_PORT": "80", "HTTP_HOST": "localhost",
    "CONTENT_TYPE": "application/json; charset=" + sys.argv[1], "CONTENT_LENGTH": "0",
    "wsgi.input": io.BytesIO(), "wsgi.errors": sys.stderr, "wsgi.url_scheme": "http",
}
b"".join(application(environ, start_response))
print(answers)
"""


@pytest.mark.parametrize("charset", ["hex", "bogus", "zip", "utf-8", "rot13"])
def test_a_charset_that_is_no_texts_is_no_server_error(charset: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, charset],
        cwd=BACKEND,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.strip() == "['404 Not Found']", done.stderr
