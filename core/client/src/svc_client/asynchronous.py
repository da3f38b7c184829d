"""The same client for programs on asyncio: each call waits in a thread, the loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar

from svc.operations import DeclaredOperation, Page
from svc.operations.values import next_arguments
from svc_client.client import Client
from svc_client.transport import Body, Response

__all__ = ["AsyncClient"]

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class AsyncClient:
    """A server of svc, for one event loop. An ``async with`` closes it.

    A call that is cancelled is left to end by itself: what it asked for may be done.

    Args:
        url: as for ``Client``.
        calls: how many calls may wait at once.
        options: what else ``Client`` takes.
    """

    def __init__(self, url: str, *, calls: int = 32, **options: Any) -> None:
        self.client = Client(url, **options)
        self._threads = ThreadPoolExecutor(calls, thread_name_prefix="svc-client")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def call(self, operation: DeclaredOperation[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Returns what an operation answers; see ``Client.call``."""
        answer: R = await self._run(partial(self.client.call, operation, *args, **kwargs))
        return answer

    async def items(
        self, operation: DeclaredOperation[P, Page[T]], *args: P.args, **kwargs: P.kwargs
    ) -> AsyncIterator[T]:
        """Yields the items of all pages that an operation answers; see ``Client.items``."""
        arguments: Mapping[str, Any] = operation.parameters.bind(*args, **kwargs).arguments
        while True:
            page: Page[T] = await self._run(partial(self.client.call, operation, **arguments))
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            arguments = next_arguments(operation, arguments, page.next_cursor)

    async def request(self, method: str, url: str, *, body: Body = None, **options: Any) -> Response:
        """Returns the answer to a request once its head has arrived; see ``Client.request``."""
        response: Response = await self._run(partial(self.client.request, method, url, body=body, **options))
        return response

    async def close(self) -> None:
        """Closes all connections, once the calls that wait have ended."""
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)
        self.client.close()

    async def _run(self, function: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function)
