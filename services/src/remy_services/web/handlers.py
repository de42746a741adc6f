"""Handlers of the page's API, which use the same client calls as the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from importlib import resources
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from remy_farm.analysis.live_page import live_network_page, table_tree
from remy_farm.remycc import RemyCC, from_json
from remy_farm.specification import SpecError, parse_spec, to_yaml
from remy_proto.v1 import design_service_pb2 as messages
from remy_proto.v1 import job_pb2, spec_pb2
from remy_services.client.design_client import DesignClient
from remy_services.jobs.formatting import job_dict
from remy_services.web.feed import Tree, epochs_tree, history_tree, job_row
from remy_services.web.guard import LIVE_POLICY, RequestRefused
from remy_services.web.sessions import Session

_MOST_COMPARED: Final = 16
# Reference of the specification language, shown beside the editor.
_SPECIFICATION_PAGE: Final = resources.files("remy_services.web") / "page" / "spec.md"
#: Called with session, request and body; returns a JSON value or a response.
Handler = Callable[[Session, Request, bytes], Any]


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a sign-in request."""

    #: A token or the server's code; empty if the coordinator requires none.
    token: str = ""


class _Submission(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    name: str = ""
    priority: int = 0
    validate_only: bool = False


class _Fork(msgspec.Struct, forbid_unknown_fields=True):
    epoch: int | None = None
    name: str = ""
    settings: list[str] = []
    priority: int | None = None


class _Extension(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of `remy-farm extend`; None leaves a value unchanged."""

    epochs: int | None = None
    rules: int | None = None
    steps: int | None = None
    cpu_seconds: float | None = None
    wall_seconds: float | None = None
    epochs_without_gain: int | None = None
    joint_steps: int | None = None
    priority: int | None = None


def _submit(session: Session, _: Request, body: bytes) -> Tree:
    """Validates locally first, to list problems one by one as `validate` does, then submits."""
    given = decode_body(body, _Submission)
    try:
        spec = parse_spec(given.text)
    except SpecError as error:
        return {"problems": [str(each) for each in error.violations]}
    request = messages.SubmitJobRequest(
        spec=spec, name=given.name, priority=given.priority, validate_only=given.validate_only
    )
    job = session.account.client.submit(request)
    if given.validate_only:
        return {"problems": [], "complete": to_yaml(spec)}
    session.account.feed.poll_soon()
    return {"problems": [], "job": job_row(job)}


def _job(session: Session, request: Request, _: bytes) -> Tree:
    job = session.account.client.get(request.path_params["job"])
    tree = job_dict(job)
    text = to_yaml(job.spec) if job.HasField("spec") else ""
    return {"row": job_row(job), "job": tree, "yaml": text}


def _history(session: Session, request: Request, _: bytes) -> Tree:
    after = _number(request, "after") or 0
    return history_tree(session.account.client, request.path_params["job"], after)


def _epochs(session: Session, request: Request, _: bytes) -> list[Tree]:
    return epochs_tree(session.account.client, request.path_params["job"])


def _table(session: Session, request: Request, _: bytes) -> Tree:
    remycc = _remycc(session.account.client, request.path_params["job"], _number(request, "epoch"))
    return table_tree(remycc)


def _change(session: Session, request: Request, body: bytes) -> Tree:
    client, job = session.account.client, request.path_params["job"]
    match request.path_params["action"]:
        case "pause":
            changed = client.pause(job)
        case "resume":
            changed = client.resume(job)
        case "cancel":
            changed = client.cancel(job)
        case "fork":
            changed = _fork(client, job, decode_body(body, _Fork))
        case "extend":
            changed = _extend(client, job, decode_body(body, _Extension))
        case action:
            raise RequestRefused(
                HTTPStatus.NOT_FOUND, f"{action[:40]!r} is not an operation on jobs"
            )
    session.account.feed.poll_soon()
    return {"job": job_row(changed)}


def _fork(client: DesignClient, job: str, given: _Fork) -> job_pb2.Job:
    settings = [each.strip() for each in given.settings if each.strip()]
    return client.fork(
        messages.ForkJobRequest(
            job=job, epoch=given.epoch, name=given.name, settings=settings, priority=given.priority
        )
    )


def _extend(client: DesignClient, job: str, given: _Extension) -> job_pb2.Job:
    budgets = {
        name: value
        for name, value in msgspec.structs.asdict(given).items()
        if value is not None and name not in ("joint_steps", "priority")
    }
    stop = None
    if budgets:
        stop = spec_pb2.Stop()
        stop.CopyFrom(client.get(job).spec.stop)
        for name, value in budgets.items():
            setattr(stop, name, value)
    return client.extend(job, stop=stop, joint_steps=given.joint_steps, priority=given.priority)


def _compare(session: Session, request: Request, _: bytes) -> Tree:
    client = session.account.client
    response = client.compare(_query_values(request, "job", least=2))
    return {
        "jobs": [job_row(job) for job in response.jobs],
        "differences": [
            {"path": each.path, "values": list(each.values)} for each in response.differences
        ],
        "epochs": [epochs_tree(client, job.id) for job in response.jobs],
    }


def _reference(_: Session, __: Request, ___: bytes) -> Tree:
    return {"markdown": _SPECIFICATION_PAGE.read_text(encoding="utf-8")}


def _live(session: Session, request: Request, _: bytes) -> Response:
    """Serves the live network with tables of jobs, each named as JOB or JOB:EPOCH."""
    client = session.account.client
    remyccs = {}
    for each in _query_values(request, "table", least=1):
        job, _colon, epoch = each.partition(":")
        shown = client.get(job)
        number = _whole(epoch, "an epoch") if epoch else None
        label = f"{shown.name}, epoch {number}" if epoch else shown.name
        remyccs[f"{label} ({shown.id})" if label in remyccs else label] = _remycc(
            client, shown.id, number
        )
    return HTMLResponse(
        live_network_page(remyccs), headers={"Content-Security-Policy": LIVE_POLICY}
    )


def _lines(session: Session, request: Request, _: bytes) -> list[Tree]:
    return [
        {
            "worker": each.worker_id,
            "host": each.host,
            "time": each.unix_seconds,
            "level": each.level,
            "text": each.text,
        }
        for each in session.account.client.worker_lines(request.path_params["job"])
    ]


def _remycc(client: DesignClient, job: str, epoch: int | None) -> RemyCC:
    response = client.remycc(job, epoch=epoch, file_format=messages.REMY_CC_FORMAT_JSON)
    return RemyCC.from_message(from_json(response.content))


def decode_body(body: bytes, kind: type[Any]) -> Any:
    """Decodes a request's JSON body. Raises RequestRefused."""
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        sentence = f"the request is invalid: {error}"
        raise RequestRefused(HTTPStatus.BAD_REQUEST, sentence) from error


def _query_values(request: Request, name: str, *, least: int) -> list[str]:
    """Returns the query parameters of a name. Raises RequestRefused for too few or too many."""
    named = request.query_params.getlist(name)
    if not least <= len(named) <= _MOST_COMPARED:
        sentence = f"{len(named)} {name}s were given; {least} to {_MOST_COMPARED} are allowed"
        raise RequestRefused(HTTPStatus.BAD_REQUEST, sentence)
    return named


def _number(request: Request, name: str) -> int | None:
    text = request.query_params.get(name)
    return None if text is None else _whole(text, name)


def _whole(text: str, name: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise RequestRefused(
            HTTPStatus.BAD_REQUEST, f"{name} is {text[:40]!r}, but must be a whole number"
        )
    return int(text)


#: Handler and methods by path.
HANDLERS: Final[Mapping[str, tuple[Handler, list[str]]]] = {
    "/api/jobs": (_submit, ["POST"]),
    "/api/jobs/{job}": (_job, ["GET"]),
    "/api/jobs/{job}/history": (_history, ["GET"]),
    "/api/jobs/{job}/epochs": (_epochs, ["GET"]),
    "/api/jobs/{job}/table": (_table, ["GET"]),
    "/api/jobs/{job}/lines": (_lines, ["GET"]),
    "/api/jobs/{job}/{action}": (_change, ["POST"]),
    "/api/compare": (_compare, ["GET"]),
    "/api/reference": (_reference, ["GET"]),
    "/live": (_live, ["GET"]),
}
