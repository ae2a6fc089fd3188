"""What docker-compose.yml and the Dockerfile promise, read from the files."""

from __future__ import annotations

from importlib import import_module

import pytest

from config.variables import POSTGRES_PORT, TEST_DATABASE_ENGINE, VARIABLES
from jobs import conf
from jobs.tests.compose.support import (
    BACKEND,
    COMPOSE_FILE,
    INTERPOLATION,
    dockerfile,
    seconds,
    services,
    the,
)

DEFAULTS = {variable.name: variable.default for variable in VARIABLES}


def test_the_services_are_postgres_backend_and_worker() -> None:
    assert set(services()) == {"postgres", "backend", "worker"}


def test_backend_and_worker_are_one_image_built_once_and_pulled_from_nowhere() -> None:
    backend, worker = services()["backend"], services()["worker"]
    assert backend["image"] == worker["image"]
    assert backend["build"] == "./backend"
    assert "build" not in worker
    assert backend["pull_policy"] == worker["pull_policy"] == "never"
    assert backend["environment"] == worker["environment"]


def test_every_port_is_published_on_loopback_alone() -> None:
    published = [port for service in services().values() for port in service.get("ports", [])]
    assert sorted(published) == ["127.0.0.1:5432:5432", "127.0.0.1:8000:8000"]


def test_another_postgresql_on_5432_is_avoided_from_outside_only() -> None:
    found = services(POSTGRES_HOST="elsewhere", POSTGRES_PORT="5433")
    assert found["postgres"]["ports"] == ["127.0.0.1:5433:5432"]
    for name in ("backend", "worker"):
        assert found[name]["environment"]["POSTGRES_HOST"] == "postgres"
        assert found[name]["environment"]["POSTGRES_PORT"] == POSTGRES_PORT.default


def test_each_service_starts_after_those_it_needs_are_healthy() -> None:
    healthy = {"condition": "service_healthy"}
    found = services()
    assert "depends_on" not in found["postgres"]
    assert found["backend"]["depends_on"] == {"postgres": healthy}
    assert found["worker"]["depends_on"] == {"postgres": healthy, "backend": healthy}
    for name in ("postgres", "backend"):
        check = found[name]["healthcheck"]
        assert check["test"][0] == "CMD", "a shell would run it"
        assert seconds(check["timeout"]) >= 4, "the health answer may take 3 s"
        assert seconds(check["interval"]) * check["retries"] >= 120, "slow machines start slowly"


def test_postgres_is_asked_over_tcp_for_the_database_and_user_that_the_others_use() -> None:
    found = services(POSTGRES_USER="someone", POSTGRES_DB="some_queue")
    assert found["postgres"]["healthcheck"]["test"][1:] == [
        "pg_isready",
        "--host=127.0.0.1",
        "--username=someone",
        "--dbname=some_queue",
    ]
    server = found["postgres"]["environment"]
    assert server["POSTGRES_USER"] == "someone"
    assert server["POSTGRES_DB"] == "some_queue"
    assert server.items() <= found["backend"]["environment"].items()


def test_the_data_is_kept_in_the_volume_that_image_18_writes_to() -> None:
    assert services()["postgres"]["image"] == "postgres:18"
    assert services()["postgres"]["volumes"] == ["postgres-data:/var/lib/postgresql"]


def test_f85_every_command_is_in_exec_form_and_a_shell_gives_way_to_the_server() -> None:
    backend, worker = services()["backend"]["command"], services()["worker"]["command"]
    server = the("CMD").exec_form
    assert worker == ["python", "manage.py", "run_job_workers"]
    assert backend == [
        "sh",
        "-c",
        f"python manage.py migrate --no-input && exec {' '.join(server)}",
    ]
    assert server[0] == "gunicorn"
    assert server[-2:] == ["--bind", "0.0.0.0:8000"]
    assert the("STOPSIGNAL").text == "SIGTERM"
    assert not [step for step in dockerfile() if step.name == "ENTRYPOINT"]
    assert services()["backend"]["init"] is services()["worker"]["init"] is True


@pytest.mark.parametrize("grace_seconds", [None, 0, 59, 60, 3600])
def test_f85_docker_waits_longer_than_the_worker_waits_for_its_handlers(
    grace_seconds: int | None,
) -> None:
    name = "JOB_WORKER_SHUTDOWN_GRACE_SECONDS"
    found = services() if grace_seconds is None else services(**{name: str(grace_seconds)})
    default = int(DEFAULTS[name])
    grace = default if grace_seconds is None else grace_seconds
    assert seconds(found["worker"]["stop_grace_period"]) >= grace + 10


def test_f85_docker_waits_longer_than_gunicorn_waits_for_its_requests() -> None:
    waits = import_module("gunicorn.config").GracefulTimeout.default
    assert seconds(services()["backend"]["stop_grace_period"]) > waits


def test_every_service_comes_back_after_it_died_but_not_after_it_was_stopped() -> None:
    assert {service["restart"] for service in services().values()} == {"unless-stopped"}


def test_every_variable_is_handed_on_and_no_unknown_one() -> None:
    for name in ("backend", "worker"):
        handed_on = set(services()[name]["environment"])
        assert handed_on == set(DEFAULTS) - {TEST_DATABASE_ENGINE.name}
    for setting in conf.SETTINGS:
        assert services()["worker"]["environment"][setting.name] is None


def test_defaults_written_here_are_those_of_the_application() -> None:
    written = {
        (match["name"], match["default"])
        for match in INTERPOLATION.finditer(COMPOSE_FILE.read_text("utf-8"))
        if match["name"] != "DJANGO_ALLOWED_HOSTS"
    }
    assert {name for name, _ in written} == {
        "JOB_WORKER_SHUTDOWN_GRACE_SECONDS",
        "POSTGRES_DB",
        "POSTGRES_PASSWORD",
        "POSTGRES_PORT",
        "POSTGRES_USER",
    }
    assert written == {(name, DEFAULTS[name]) for name, _ in written}


def test_the_host_that_the_health_check_asks_for_is_always_allowed() -> None:
    def hosts(**environ: str) -> list[str]:
        value: str = services(**environ)["backend"]["environment"]["DJANGO_ALLOWED_HOSTS"]
        return value.split(",")

    assert sorted(hosts()) == sorted(DEFAULTS["DJANGO_ALLOWED_HOSTS"].split(","))
    assert hosts(DJANGO_ALLOWED_HOSTS="queue.example") == ["127.0.0.1", "queue.example"]


def test_the_image_runs_as_a_fixed_account_that_is_not_root_and_owns_nothing() -> None:
    steps = dockerfile()
    uid, gid = the("USER").text.split(":")
    assert int(uid) > 0
    assert int(gid) > 0
    assert not [step for step in steps if "--chown" in step.text or "chmod" in step.text]
    after = [step.name for step in steps[steps.index(the("USER")) :]]
    assert not {"RUN", "COPY", "ADD"} & set(after)
    assert all("user" not in service for service in services().values())


def test_the_image_holds_only_locked_wheels_and_no_compiler() -> None:
    installs = [step.text for step in dockerfile() if " install " in step.text]
    (pip,) = installs
    assert "--require-hashes" in pip
    assert "--only-binary=:all:" in pip
    assert pip.endswith("--requirement requirements.txt")
    first_copy = next(step for step in dockerfile() if step.name == "COPY")
    assert first_copy.text == "requirements.txt ."


def test_the_base_image_can_be_exchanged_while_building() -> None:
    assert the("ARG").text == "BASE_IMAGE=python:3.13-slim"
    assert the("FROM").text == "${BASE_IMAGE}"


def test_the_build_context_leaves_out_what_only_developers_need() -> None:
    left_out = (BACKEND / ".dockerignore").read_text("utf-8").splitlines()
    for pattern in ("**/.*", "**/tests", "conftest.py", "devdb", "requirements-*.txt", "uv.lock"):
        assert pattern in left_out


def test_zone_files_come_with_the_locked_requirements_on_every_system() -> None:
    lines = (BACKEND / "requirements.txt").read_text("utf-8").splitlines()
    (locked,) = (line for line in lines if line.startswith("tzdata=="))
    assert ";" not in locked
