"""A process that owns (or joins) a server until its input ends; the tests kill it.

python owner.py durable|throwaway BASE
"""

import json
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import devdb


def main(kind: str, base: Path, site_packages: list[str]) -> None:
    binaries = devdb.find_binaries(site_packages=[Path(path) for path in site_packages])
    with ExitStack() as stack:
        server: devdb.Server
        if kind == "throwaway":
            server = stack.enter_context(devdb.throwaway_server(base, binaries))
        else:
            server = devdb.start_server(base, binaries, say=lambda _line: None)
            stack.callback(server.stop)
        answer: dict[str, object] = {"owned": server.owned, **server.connection.environment()}
        if isinstance(server, devdb.OwnedServer):
            answer |= {"pid": server.process.pid, "home": str(server.cluster.home)}
        print(json.dumps(answer), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
