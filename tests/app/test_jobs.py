"""Turns in the queue, workers that are stopped or killed."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.client import Client, png, wait_until
from app.conftest import Server
from psal.app.lanes import BusyError, Job, Lane
from psal.app.limits import MAX_JOBS_PER_SESSION
from psal.app.open_document import job_state
from psal.app.workers import StoppedError


def test_sessions_take_turns_however_many_jobs_one_has() -> None:
    async def run() -> list[str]:
        lane, order, gate = Lane(1), list[str](), asyncio.Event()

        async def work(name: str) -> None:
            async with lane.turn(name[0], Job(name)):
                order.append(name)
                await gate.wait()

        tasks = [asyncio.create_task(work(name)) for name in ("a0", "a1", "a2", "a3", "b0", "b1", "c0")]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(run()) == ["a0", "a1", "b0", "c0", "a2", "b1", "a3"]


def test_places_limits_and_stops_of_those_who_wait() -> None:
    async def run() -> None:
        lane, gate = Lane(2), asyncio.Event()

        async def work(session: str, job: Job) -> None:
            async with lane.turn(session, job):
                await gate.wait()

        jobs = [Job("a") for _ in range(1 + MAX_JOBS_PER_SESSION)]
        tasks = [asyncio.create_task(work("a", job)) for job in jobs]
        await asyncio.sleep(0)
        assert lane.running == 1  # one of each session, though there is room for two
        assert [job.place for job in jobs] == [None, *range(1, 1 + MAX_JOBS_PER_SESSION)]
        with pytest.raises(BusyError, match="8 of your jobs wait already"):
            await work("a", Job("one too many"))
        other = asyncio.create_task(work("b", Job("b")))
        await asyncio.sleep(0)
        assert lane.running == 2
        jobs[3].stop()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert jobs[4].place == 3
        gate.set()
        done = await asyncio.gather(*tasks, other, return_exceptions=True)
        assert [type(outcome) for outcome in done if outcome is not None] == [StoppedError]
        assert lane.running == 0

    asyncio.run(run())


def test_the_time_left_is_told_only_once_there_is_enough_to_tell_it_by() -> None:
    job = Job("Removing")
    job.place = 3
    assert job_state(job) == {"label": "Removing", "place": 3, "share": None, "left": None}
    job.begun = time.monotonic() - 9000
    assert job_state(job) == {"label": "Removing", "place": None, "share": None, "left": None}
    job.time_left.report(0.1, 2000)
    assert job_state(job) == {"label": "Removing", "place": None, "share": 0.1, "left": None}
    job.time_left.report(0.3, 6000)
    state = job_state(job)
    assert state is not None
    assert state["left"] == pytest.approx(11_000, rel=0.1)
    assert job_state(None) is None


def start_long_job(client: Client, photo: NDArray[Any]) -> None:
    """An edit that takes far longer than a test should."""
    client.open(png(np.tile(photo, (12, 12, 1))))
    client.do("/position", {"position": 0})
    assert client.post("/edits/upscale?scale=2.2").status_code == 200


def test_an_edit_is_stopped_in_mid_kernel_and_the_next_one_runs(client: Client, photo: NDArray[Any]) -> None:
    start_long_job(client, photo)
    states = client.states()
    state = next(state for state in states if state["job"] and state["job"]["place"] is None)
    assert state["job"]["left"] is None  # nothing to estimate by yet
    refused = client.post("/fill", {})
    assert (refused.status_code, refused.json()["error"].startswith("an edit of this photograph is running")) == (
        409,
        True,
    )
    client.post("/stop")
    state = next(state for state in states if state["job"] is None)
    assert (state["message"], state["steps"]) == ({"kind": "info", "text": "stopped"}, [])
    assert client.stroke((60, 60), size=20, fill=True)["steps"] == ["Remove"]


def test_a_worker_that_was_killed_while_idle_is_replaced(client: Client, server: Server, photo_file: Path) -> None:
    client.open(photo_file)
    client.stroke((60, 60), size=20, fill=True)
    killed = server.workers()
    for pid in killed:
        os.kill(pid, signal.SIGKILL)
    state = client.stroke((30, 30), size=20, fill=True)
    assert (state["steps"], state["message"]) == (["Remove", "Remove"], None)


def test_a_worker_that_dies_in_its_work_is_told_of(client: Client, server: Server, photo: NDArray[Any]) -> None:
    start_long_job(client, photo)

    def broken_off() -> bool:
        """Kill the workers again and again: one that has not begun is replaced."""
        for pid in server.workers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return client.get().json()["job"] is None

    wait_until(broken_off)
    assert client.get().json()["message"]["text"].startswith("the work broke off")


def test_a_client_of_the_api_that_hangs_up_ends_its_edit(server: Server, client: Client, photo: NDArray[Any]) -> None:
    import http.client

    import httpx

    request = httpx.Request(
        "POST", "http://x", files={"photo": ("a.png", png(np.tile(photo, (12, 12, 1))))}, data={"scale": "2.2"}
    )
    connection = http.client.HTTPConnection(server.address.removeprefix("http://").strip("/"))
    content = request.read()
    connection.request("POST", "/api/upscale", content, {"Content-Type": request.headers["content-type"]})
    folder = server.folder() / "api"
    wait_until(lambda: folder.exists() and any(folder.iterdir()))
    connection.close()
    wait_until(lambda: not any(folder.iterdir()))
