"""Tests pagination and filters of job lists."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remy_proto.v1 import job_pb2
from remy_proto.v1.design_service_pb2 import ListJobsRequest
from remy_services.jobs.requests import BadPageToken, matches, paginate
from remy_services.jobs.states import PENDING, RUNNING
from services.tests.jobs.records import at

_JOBS = [
    job_pb2.Job(
        id=f"{number:03}",
        name=f"name-{number % 3}",
        owner="ada" if number % 2 else "bob",
        state=RUNNING if number % 5 else PENDING,
        # Four jobs per second, so that ties are broken by id.
        create_time=at(number // 4),
        campaign="sweep" if number < 4 else "",
    )
    for number in range(40)
]
_NEWEST_FIRST = [job.id for job in reversed(_JOBS)]


def _ids(jobs: list[job_pb2.Job], wanted: ListJobsRequest, size: int) -> list[list[str]]:
    """Returns the job ids of all pages."""
    pages, token = [], ""
    while True:
        page = paginate(jobs, wanted, size=size, token=token)
        pages.append([job.id for job in page.jobs])
        token = page.next_token
        if not token:
            return pages


@given(size=st.integers(1, 50), data=st.data())
def test_pages_list_every_job_once_newest_first(size: int, data: st.DataObject) -> None:
    pages = _ids(data.draw(st.permutations(_JOBS)), ListJobsRequest(), size)
    assert [job for page in pages for job in page] == _NEWEST_FIRST
    assert all(len(page) == size for page in pages[:-1])


def test_created_and_deleted_jobs_do_not_shift_pages() -> None:
    first = paginate(_JOBS, ListJobsRequest(), size=10, token="")
    newer = job_pb2.Job(id="new", create_time=at(1000))
    gone = first.jobs[-1].id
    second = paginate(
        [newer, *(job for job in _JOBS if job.id != gone)],
        ListJobsRequest(),
        size=10,
        token=first.next_token,
    )
    assert [job.id for job in second.jobs] == _NEWEST_FIRST[10:20]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        (ListJobsRequest(), 40),
        (ListJobsRequest(owner="ada"), 20),
        (ListJobsRequest(states=[PENDING]), 8),
        (ListJobsRequest(name_contains="-2"), 13),
        (ListJobsRequest(campaign="sweep"), 4),
        (ListJobsRequest(campaign="sweep", owner="bob", states=[RUNNING]), 1),
        (ListJobsRequest(owner="carol"), 0),
    ],
)
def test_only_matching_jobs_are_listed(wanted: ListJobsRequest, count: int) -> None:
    pages = _ids(_JOBS, wanted, 3)
    assert sum(map(len, pages)) == count
    listed = {job_id for page in pages for job_id in page}
    assert listed == {job.id for job in _JOBS if matches(wanted, job)}


@pytest.mark.parametrize(
    "token",
    [
        "?",
        "AAAA",
        "é",
        base64.b64encode(b"x/y").decode(),
        base64.b64encode(b"1/").decode(),
        "a" * 9,
    ],
)
def test_invalid_page_tokens_are_refused(token: str) -> None:
    with pytest.raises(BadPageToken):
        paginate(_JOBS, ListJobsRequest(), size=1, token=token)


@given(token=st.text(min_size=1))
def test_any_text_is_a_valid_token_or_refused(token: str) -> None:
    try:
        page = paginate(_JOBS, ListJobsRequest(), size=100, token=token)
    except BadPageToken:
        return
    assert len(page.jobs) <= len(_JOBS)
