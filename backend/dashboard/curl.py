"""The command that would create a job, to be pasted into a shell; pure."""

from __future__ import annotations

import json
import shlex

from jobs.display import shown

# What Linux takes as one argument is 128 KiB; a longer body goes in by standard input.
MAX_ARGUMENT_BYTES = 100_000
_END_OF_BODY = "JSON"


def create_command(url: str, *, job_type: str, payload_text: str, **others: int | str) -> str:
    """A curl command that POSTs the job to `url`.

    `payload_text` is JSON and goes in as it is, digit for digit. Characters that are
    hidden or turn the text around are written as JSON's escapes, which mean the same.
    """
    members = [f'"type": {json.dumps(job_type)}', f'"payload": {payload_text}']
    members += [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in others.items()]
    body = shown("{" + ", ".join(members) + "}")
    head = f"curl -X POST {shlex.quote(url)} \\\n  -H 'Content-Type: application/json' \\\n"
    if len(body.encode()) <= MAX_ARGUMENT_BYTES:
        return f"{head}  --data-raw {shlex.quote(body)}"
    return f"{head}  --data-binary @- <<'{_END_OF_BODY}'\n{body}\n{_END_OF_BODY}"
