"""What reaches the entry point before any middleware does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

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
