"""Tests job names, ids and their lookup."""

import pytest

from remy_proto.v1 import job_pb2
from remy_services.jobs.requests import (
    AmbiguousName,
    NoSuchJob,
    find_job,
    new_job_id,
    problem_with_name,
)

_JOBS = [
    job_pb2.Job(id="1", name="one"),
    job_pb2.Job(id="2", name="twin"),
    job_pb2.Job(id="3", name="twin"),
    # Its name is the id of another job.
    job_pb2.Job(id="4", name="1"),
]


def test_jobs_are_found_by_id_or_unique_name() -> None:
    assert find_job(_JOBS, "2") == "2"
    assert find_job(_JOBS, "one") == "1"


def test_ids_take_precedence_over_names() -> None:
    assert find_job(_JOBS, "1") == "1"


def test_ambiguous_names_list_the_ids() -> None:
    with pytest.raises(AmbiguousName, match="2 jobs are named 'twin'; use an id: 3, 2"):
        find_job(_JOBS, "twin")


def test_unique_id_prefixes_are_accepted() -> None:
    jobs = [
        job_pb2.Job(id="6ae2f4b1"),
        job_pb2.Job(id="6ae2f4c7"),
        job_pb2.Job(id="7", name="6ae2"),
    ]
    assert find_job(jobs, "6ae2f4b") == "6ae2f4b1"
    assert find_job(jobs, "6ae2") == "7"
    with pytest.raises(
        AmbiguousName, match="2 ids of jobs begin with '6ae2f4'; use an id: 6ae2f4c7, 6ae2f4b1"
    ):
        find_job(jobs, "6ae2f4")


@pytest.mark.parametrize("name", ["", "none", "x" * 1000])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(NoSuchJob, match="there is no job '") as caught:
        find_job(_JOBS, name)
    assert len(str(caught.value)) < 300


def test_ids_sort_by_time_and_differ_within_a_second() -> None:
    early, late = new_job_id(9, b"\xff" * 5), new_job_id(10, b"\x00" * 5)
    assert early < late != new_job_id(10, b"\x01" * 5)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("", "is empty"),
        ("x" * 101, "has 101 characters"),
        ("a\nb", "must consist of letters, digits, dots, dashes and underscores"),
        (" a", "with a letter or digit first"),
        ("a b, c: d", "must consist of letters"),
        ("-a", "with a letter or digit first"),
        ("Demo_delta-0.1", None),
        ("x" * 100, None),
    ],
)
def test_name_rules(name: str, problem: str | None) -> None:
    found = problem_with_name(name)
    assert found is None if problem is None else problem in (found or "")
