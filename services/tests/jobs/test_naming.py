"""What jobs are called."""

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
    # Named as another's id is.
    job_pb2.Job(id="4", name="1"),
]


def test_by_id_or_by_a_name_that_is_unambiguous() -> None:
    assert find_job(_JOBS, "2") == "2"
    assert find_job(_JOBS, "one") == "1"


def test_an_id_goes_before_a_name() -> None:
    assert find_job(_JOBS, "1") == "1"


def test_several_of_one_name_are_told_apart_by_id() -> None:
    with pytest.raises(AmbiguousName, match="2 jobs are named 'twin'; use an id: 3, 2"):
        find_job(_JOBS, "twin")


def test_the_beginning_of_an_id_is_enough_where_no_other_begins_so() -> None:
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
def test_there_is_no_such_job(name: str) -> None:
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
def test_what_a_name_may_be(name: str, problem: str | None) -> None:
    found = problem_with_name(name)
    assert found is None if problem is None else problem in (found or "")
