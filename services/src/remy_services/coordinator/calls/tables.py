"""The tables that a job has published."""

from __future__ import annotations

from remy_farm.v1 import job_pb2, rule_table_pb2
from remy_services.coordinator.answering.refusal import not_found, not_now
from remy_services.coordinator.farm import Farm
from remy_services.coordinator.keeping import JobKeeper
from remy_services.coordinator.running.resume import SnapshotsLost, designer_of
from remy_services.designer import OtherVersionError
from remy_services.stores import Snapshot, newest_snapshot
from remy_simulator.messages import from_native


async def epoch_table(farm: Farm, keeper: JobKeeper, epoch: int) -> rule_table_pb2.RuleTable:
    """The table at the end of an epoch. Raises CallRefused or StoreUnavailable."""
    environment = farm.environment
    data = await environment.threads.store(environment.store.epoch, keeper.job_id, epoch)
    if data is None:
        raise not_found(
            "remy_farm.v1.JobEpoch",
            f"{keeper.job_id}/{epoch}",
            f"job {keeper.job_id} has no epoch {epoch}; it has completed "
            f"{keeper.job.progress.epoch} epochs, counted from 0",
        )
    return job_pb2.JobEpoch.FromString(data).table


async def newest_table(farm: Farm, keeper: JobKeeper) -> rule_table_pb2.RuleTable:
    """The best table so far. Raises CallRefused or StoreUnavailable."""
    environment = farm.environment
    snapshot, _ = await environment.threads.store(newest_snapshot, environment.store, keeper.job_id)
    if snapshot is None and not keeper.job.progress.epoch:
        raise not_now(
            "JOB_HAS_NO_TABLE",
            keeper.job_id,
            f"job {keeper.job_id} has no table yet; it has not made its first step",
        )
    try:
        return await environment.threads.compute(_published, keeper.record, snapshot)
    except (SnapshotsLost, OtherVersionError):
        epochs = await environment.threads.store(environment.store.epochs, keeper.job_id)
        if not epochs:
            raise
        return job_pb2.JobEpoch.FromString(epochs[max(epochs)]).table


def _published(record: job_pb2.JobRecord, snapshot: Snapshot | None) -> rule_table_pb2.RuleTable:
    return from_native(designer_of(record, snapshot, ()).table)
