"""What workers say, told to the board."""

from __future__ import annotations

import grpc

from remy_farm.v1 import evaluation_pb2, worker_service_pb2
from remy_services.fleet.board import TaskBoard
from remy_services.fleet.result_check import DamagedResult, ImpossibleResult, check_result
from remy_services.fleet.workers.greeting import Unwelcome
from remy_services.fleet.workers.stream import WorkerStream

# More than a worker could use; a mistake rather than an ability.
_MOST_CREDIT_PER_THREAD = 64
_LONGEST_SENTENCE = 500
_NOTHING = evaluation_pb2.EvaluationOutcome()


def hear(
    board: TaskBoard, stream: WorkerStream, message: worker_service_pb2.WorkRequest, now: float
) -> None:
    """A worker says something after its Hello. Raises Unwelcome for what makes no sense."""
    worker_id = stream.facts.worker_id
    match message.WhichOneof("message"):
        case "result":
            stream.traffic.result_bytes += message.ByteSize()
            _hear_result(board, worker_id, message.result, now)
        case "credit":
            if message.credit.tasks > _MOST_CREDIT_PER_THREAD * stream.facts.threads:
                raise Unwelcome(
                    grpc.StatusCode.INVALID_ARGUMENT,
                    f"credit for {message.credit.tasks} tasks is more than "
                    f"{_MOST_CREDIT_PER_THREAD} for each of {stream.facts.threads} threads",
                )
            board.credit(worker_id, message.credit.tasks, now)
        case "heartbeat":
            board.heartbeat(worker_id, now)
        case "refused":
            why = message.refused.why[:_LONGEST_SENTENCE]
            board.refuse(worker_id, message.refused.lease_id, why, now)
        case "returned":
            board.give_back(worker_id, message.returned.lease_ids, now)
        case "goodbye":
            stream.goodbye = message.goodbye.why[:20] or "goodbye"
            board.say_goodbye(worker_id)
        case "ended":
            stream.process_ended = True
        case other:
            raise Unwelcome(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"a {other or 'message without content'} after Hello",
            )


def _hear_result(
    board: TaskBoard, worker_id: str, result: worker_service_pb2.TaskResult, now: float
) -> None:
    lease_id = result.lease_id
    seconds = result.cpu_seconds if 0 <= result.cpu_seconds < 1e6 else 0.0
    task = board.task(lease_id)
    if task is None:
        board.complete(worker_id, lease_id, _NOTHING, result.sha256, seconds, now)
        return
    whole, piece = task
    try:
        outcome = check_result(whole, piece, result.outcome, result.sha256)
    except DamagedResult as problem:
        board.reject(worker_id, lease_id, str(problem), now)
    except ImpossibleResult as problem:
        board.disbelieve(worker_id, lease_id, result.sha256, str(problem), now)
    else:
        board.complete(worker_id, lease_id, outcome, result.sha256, seconds, now)
