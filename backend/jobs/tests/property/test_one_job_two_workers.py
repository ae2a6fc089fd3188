"""Whatever two workers do to one job in whatever order, only its owner is heard."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from jobs.tests.mutants.fence import PARTS, killer_of
from jobs.tests.property.machine import OneJobTwoWorkers, WithoutTheShapeCheck

pytestmark = pytest.mark.django_db

MANY = settings(settings.get_profile("suite"), max_examples=40, stateful_step_count=20)


@pytest.mark.parametrize("machine", [OneJobTwoWorkers, WithoutTheShapeCheck])
def test_any_history_of_one_job_is_the_models(machine: type[OneJobTwoWorkers]) -> None:
    run_state_machine_as_test(machine, settings=MANY)


@pytest.mark.parametrize("part", PARTS)
def test_a_fence_that_lacks_a_part_is_found_out(part: str) -> None:
    assert killer_of(part) is not None
