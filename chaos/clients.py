"""A process that is a client of the queue and writes down what it does.

    python -m chaos.clients --directory D --who client-1 --seed 7 [--per-second 20]

Until SIGTERM it creates jobs in every way there is, retries failed ones, reads jobs and
follows the feed, and takes a job in hand now and then, in the database that POSTGRES_* names.
Whatever becomes of that database, it goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path

import django


def main() -> None:
    """Be a client until SIGTERM."""
    parser = argparse.ArgumentParser(description="A client that writes down what it does.")
    parser.add_argument("--directory", type=Path, required=True, help="where the ledger is")
    parser.add_argument("--who", required=True, help="this client's name in it")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--per-second", type=float, default=20.0)
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chaos.settings")
    django.setup()

    from chaos.client import Client
    from jobs import registry

    job_types = {
        known.name: json.loads(known.example)
        for known in registry.described_types()
        if known.name.startswith("chaos.")
    }
    client = Client(options.directory, options.who, options.seed, job_types)
    signal.signal(signal.SIGTERM, lambda *_: client.stop())
    client.run(options.per_second)


if __name__ == "__main__":
    main()
