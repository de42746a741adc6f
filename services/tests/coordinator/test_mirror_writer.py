"""Tests the lag and failure count of MirrorWriter."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from remy_services.coordinator import maintenance
from remy_services.coordinator.maintenance import MirrorWriter
from remy_services.stores.archive import Mirror
from services.tests.stores.model_store import ModelStore
from services.tests.stores.real_job import make_job
from tests.waiting import wait_in_loop


def test_lag_counts_from_the_oldest_unmirrored_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "_RETRY_SECONDS", 0.01)
    store = ModelStore()
    make_job(store, "a")
    folder = tmp_path / "mirror"
    folder.write_text("in the way")

    async def scenario() -> None:
        writer = MirrorWriter(Mirror(f"file://{folder}"), store)
        assert (writer.behind_seconds, writer.failures) == (0, 0)
        writer.save("a")
        await wait_in_loop(lambda: writer.failures > 2)
        behind = writer.behind_seconds
        assert behind > 0
        # Another change does not reset the lag.
        writer.save("a")
        assert writer.behind_seconds >= behind
        folder.unlink()
        await wait_in_loop(lambda: writer.behind_seconds == 0)
        assert (folder / "a.remyjob").exists()
        assert not writer.trouble
        await writer.close(1.0)

    asyncio.run(scenario())
