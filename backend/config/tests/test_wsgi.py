"""What reaches the entry point before any middleware does."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

BACKEND = Path(__file__).resolve().parents[2]

# In a process of its own, since importing the entry point sets Django up as a server.
SCRIPT = """
import io, json, sys
from config.wsgi import application
answers = []
def start_response(status, headers, exc_info=None):
    answers.append(int(status.split()[0]))
for method, path, content_type in json.loads(sys.argv[1]):
    environ = {
        "REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": "a=%e9",
        "SERVER_NAME": "localhost", "SERVER_PORT": "80", "HTTP_HOST": "localhost",
        "CONTENT_TYPE": content_type, "CONTENT_LENGTH": "2", "wsgi.input": io.BytesIO(b"{}"),
        "wsgi.errors": sys.stderr, "wsgi.url_scheme": "http",
    }
    b"".join(application(environ, start_response))
print(json.dumps(answers))
"""

NO_TEXT = ["hex", "bogus", "zip", "rot13", "idna", "undefined", "punycode"]
UNREADABLE = ["foo*=bogus''a", "charset*=bogus''a", "foo*=idna''%ff", "charset*=idna''%ff"]
PARAMETERS = [*(f"charset={name}" for name in NO_TEXT), *UNREADABLE, "charset=utf-8", "=", ";;"]


def statuses(*requests: tuple[str, str, str]) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(requests)],
        cwd=BACKEND,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found


def test_no_content_type_is_a_server_error() -> None:
    types = [f"{kind}; {more}" for kind in ("x/y", "application/json") for more in PARAMETERS]
    requests = [("POST", "/api/no-such-call/", header) for header in types]
    assert dict(zip(types, statuses(*requests), strict=True)) == dict.fromkeys(types, 404)
    requests = [("GET", "/api/config/", header) for header in types]
    assert dict(zip(types, statuses(*requests), strict=True)) == dict.fromkeys(types, 200)


def test_a_body_in_another_charset_is_still_refused() -> None:
    headers = [f"application/json; charset={name}" for name in ("utf-16", "latin-1", *NO_TEXT)]
    headers += ["x/y; charset=utf-8", "application/json; foo*=bogus''a; charset=utf-16"]
    answers = statuses(*(("POST", "/api/jobs/", header) for header in headers))
    assert dict(zip(headers, answers, strict=True)) == dict.fromkeys(headers, 415)
    headers = ["application/json", "application/json; charset=UTF-8"]
    assert statuses(*(("POST", "/api/jobs/", header) for header in headers)) == [400, 400]


@pytest.fixture
def port(outside_environ: dict[str, str]) -> Iterator[int]:
    """Where gunicorn serves the project, with the settings of gunicorn.conf.py."""
    server = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--bind", "127.0.0.1:0", "config.wsgi"],
        cwd=BACKEND,
        env=outside_environ,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    try:
        listening = (re.search(r"http://127\.0\.0\.1:(\d+)", line) for line in server.stderr)
        yield int(next(filter(None, listening))[1])
    finally:
        server.terminate()
        server.communicate(timeout=60)


def test_gunicorn_leaves_requests_to_the_application(port: int) -> None:
    def status(path: str, **headers: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse().status
        connection.close()
        return answer

    request_line = "GET /api/config/?a= HTTP/1.1"
    assert status("/api/config/?a=" + "x" * (8190 - len(request_line))) == 200
    for name in ("Script-Name", "SCRIPT_NAME", "Path-Info", "PATH_INFO"):
        assert status("/api/config/", **{name: "/elsewhere"}) == 200, name
