"""A connection that does not wait for ever for a request to be complete."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol


def protocol_with_timeout(seconds: float) -> type[H11Protocol]:
    """HTTP protocol of uvicorn that closes connections whose next request does not begin within the time.

    uvicorn itself limits the time between two requests only. Bodies are limited by the middleware.
    """

    class Protocol(H11Protocol):
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._answering:
                self._cancel()
            elif self._timer is None:  # not from every byte on: one a minute would do otherwise
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel()
            super().connection_lost(exc)

        @property
        def _answering(self) -> bool:
            cycle: Any = self.cycle
            return cycle is not None and not cycle.response_complete

        def _wait(self) -> None:
            self._timer = self.loop.call_later(seconds, self._give_up)

        def _cancel(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _give_up(self) -> None:
            self._timer = None
            if not self._answering and not self.transport.is_closing():
                self.transport.close()

    return Protocol
