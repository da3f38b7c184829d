"""The WSGI application: Falcon with the kernel's middleware, and one way out for every answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import falcon
from falcon.routing import PathConverter
from msgspec.structs import replace

from svc.errors import CorruptRecord, ServiceUnavailable
from svc.executor import current_executor
from svc.operations.access import error_page_of
from svc.operations.json import JSON_MEDIA_TYPE, json_body
from svc.pipeline.access import (
    AnswerBody,
    Exchange,
    count_request,
    fields_for,
    first_piece,
    log_error,
    pairs_of,
    tell_observers,
)
from svc.pipeline.binding import add_routes, all_routes, bind_routes
from svc.pipeline.bodies import body_of
from svc.pipeline.caching import NO_STORE, CachePolicy, vary_by
from svc.pipeline.client_address import ClientAddresses
from svc.pipeline.context import SvcRequest
from svc.pipeline.framework import Fields, LeanApp, LeanResponse, RememberingRouter
from svc.pipeline.lifetime import Lifetime
from svc.pipeline.middleware import (
    CrossOrigin,
    Identification,
    PermissionCheck,
    RequestIds,
    Routing,
    forget_paths,
    request_id_of,
)
from svc.pipeline.observing import Observers
from svc.pipeline.refusals import RefusalLog
from svc.pipeline.responses import CONTENT_POLICY
from svc.pipeline.routing import Endpoint
from svc.pipeline.serialization import ErrorAnswer, answer_for, apply_answer
from svc.pipeline.service import Service
from svc.pipeline.settings import PipelineSettings
from svc.plugins import select_auth_mode
from svc.redaction import enter_request, leave_request, redact_answer

if TYPE_CHECKING:
    from svc.database import Database
    from svc.plugins import Plugins

__all__ = ["Application", "create_app", "create_service_app"]

StartResponse = Callable[..., Any]


_STOPPING = "The server is stopping; ask again."


class Application(LeanApp[SvcRequest]):
    """The WSGI application. Made by ``create_app``. ``served`` is the number of requests so far."""

    def __init__(self, service: Service, settings: PipelineSettings, lifetime: Lifetime) -> None:
        limits = settings.limits
        middleware: list[Any] = [
            CachePolicy(),
            RequestIds(lifetime, limits, ClientAddresses(settings.trusted_proxies), settings.hsts_s),
            # Where no origin is allowed there is nothing to say about any.
            *([_cross_origin(service, settings)] if settings.cors_origins else ()),
            Routing(service),
            Identification(service),
            PermissionCheck(),
        ]
        super().__init__(
            request_type=SvcRequest,
            response_type=LeanResponse,
            middleware=middleware,
            router=RememberingRouter(),
        )
        self._router: RememberingRouter
        self.service = service
        self.settings = settings
        self.lifetime = lifetime
        self.served = 0
        self._body_timeout_s = limits.body_timeout_s
        self._logs_access = settings.access_log
        self._refusals = RefusalLog()
        self._observers = Observers(service) or None
        self.req_options.keep_blank_qs_values = True
        self.resp_options.media_handlers[falcon.MEDIA_JSON] = falcon.media.JSONHandler(dumps=json_body)
        self.add_error_handler(Exception, self._answer_error)
        self.add_error_handler(falcon.HTTPError, self._answer_error)
        # The rest of a URL as text, for names that may hold slashes and are no paths of the database.
        self.router_options.converters["text"] = PathConverter
        add_routes(self, bind_routes(all_routes(service.plugins)))

    def __call__(self, env: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answers one request (PEP 3333)."""
        self.served += 1
        enter_request(env)
        source = env["svc.input"] = body_of(env, self._body_timeout_s)
        env["svc.request_id"] = request_id_of(env)
        env["svc.application"] = self
        if self._observers is not None:
            env["svc.observation"] = self._observers.begin()
        began = time.perf_counter()
        fields: Fields = []
        try:
            status_line, fields, body = self.answer(env)
            if isinstance(body, list):
                if source.is_finished and not self._logs_access:
                    # Nothing is left to do behind it.
                    sent = sum(map(len, body))
                    count_request(env, status_line, began, sent, source.received)
                    if self._observers is not None:
                        tell_observers(env, status_line, sent, source.received)
                    start_response(status_line, fields_for(env, fields))
                    leave_request()
                    return body
                pieces, close = iter(body), None
            else:
                pieces, close = first_piece(body)
        except current_executor().abandoned:
            # nginx's number for a client that closed its connection; nobody reads it but the log.
            gone = Exchange(source, "499 Client Closed Request", began, logs=self._logs_access)
            gone.end(env, 0, complete=False)
            raise
        except Exception as error:  # noqa: BLE001 - the last place that can still answer
            status_line, fields, late = self._late_answer(env, fields, error)
            pieces, close = iter([late]), None
        exchange = Exchange(source, status_line, began, logs=self._logs_access)
        exchange.prepare_connection()
        start_response(status_line, fields_for(env, fields))
        return AnswerBody(env, exchange, pieces, self.service.faults, close)

    def drop_caches(self) -> None:
        """Forgets what was kept of former requests. ``svc_worker.Worker`` calls it after many connections."""
        self._router.forget()
        forget_paths()
        live = self.service.live
        if live is not None:
            live.callers.forget()
            live.database.drop_caches()

    def _answer_error(
        self, req: SvcRequest, resp: falcon.Response, error: Exception, _params: dict[str, Any]
    ) -> None:
        answer = answer_for(self._unless_gone(error), req.context.challenge)
        if not answer.expected:
            log_error(req.env, error, self.service.faults)
        self._refusals.note(req, error)
        identity = req.context.identity_or_none
        if answer.status == 404 and identity is not None and identity.hides_denials:
            answer = _uniform_absence(answer)
        apply_answer(resp, _without_credentials(req.env, answer))
        endpoint: Endpoint | None = req.env.get("svc.endpoint")
        page = None if endpoint is None else error_page_of(endpoint.responder)
        if page is not None and "text/html" in req.accept.lower():
            page(resp, answer.status)
            vary_by(resp, "Accept")

    def _unless_gone(self, error: Exception) -> Exception:
        """The error, or one that says to ask again: the server stops, or a collection has removed something.

        Short answers take no hold: if one pauses for as long as a collection takes, objects are missing.
        """
        if self.service.is_closed:
            # The database was closed below the request: whatever it met there (a closed index or descriptor)
            # is no failure of anybody.
            return error if answer_for(error).expected else ServiceUnavailable(_STOPPING, retry_after=1)
        live = self.service.live
        if isinstance(error, CorruptRecord) and live is not None and live.database.was_just_collected():
            return ServiceUnavailable("What was asked for was collected meanwhile; ask again.", retry_after=1)
        return error

    def _late_answer(
        self, env: dict[str, Any], fields: Fields, error: Exception
    ) -> tuple[str, Fields, bytes]:
        """The answer for an error of a stream before its first piece, or of Falcon itself."""
        answer = answer_for(self._unless_gone(error))
        if not answer.expected:
            log_error(env, error, self.service.faults)
        body = json_body(_without_credentials(env, answer).body)
        kept = [
            (name, value)
            for name, value in pairs_of(fields)
            if name.lower() == "vary" or name.lower().startswith("access-control-")
        ]
        late: Fields = [
            ("X-Request-Id", env["svc.request_id"]),
            ("X-Content-Type-Options", "nosniff"),
            ("Content-Security-Policy", CONTENT_POLICY),
            ("Content-Type", JSON_MEDIA_TYPE),
            ("Content-Length", str(len(body))),
            ("Cache-Control", NO_STORE),
            *kept,
            *answer.headers.items(),
        ]
        return falcon.code_to_http_status(answer.status), late, body


def create_app(
    database: Database,
    plugins: Plugins,
    *,
    settings: PipelineSettings | None = None,
    lifetime: Lifetime | None = None,
) -> Application:
    """Returns the WSGI application that serves an open database; ``app.service.close()`` closes that.

    Raises PluginMissing if the auth mode of the settings is not at hand in this process or database, and
    PluginError if a route is not served as it was registered.
    """
    settings = settings or PipelineSettings()
    service = Service(plugins, select_auth_mode(plugins, settings.auth), settings.startup_wait_s)
    service.adopt(database)
    return Application(service, settings, lifetime or Lifetime())


def _cross_origin(service: Service, settings: PipelineSettings) -> CrossOrigin:
    descriptors = service.plugins.descriptors.values()
    return CrossOrigin(
        settings.cors_origins,
        [header for descriptor in descriptors for header in descriptor.response_headers],
    )


def create_service_app(
    service: Service, settings: PipelineSettings, lifetime: Lifetime | None = None
) -> Application:
    """Returns the WSGI application of a service whose database may still be opening."""
    return Application(service, settings, lifetime or Lifetime())


def _without_credentials(env: dict[str, Any], answer: ErrorAnswer) -> ErrorAnswer:
    """The error without credentials of its request; the requested path stays."""
    body = {
        name: redact_answer(env, value) if isinstance(value, str) and name not in ("code", "path") else value
        for name, value in answer.body.items()
    }
    return answer if body == answer.body else replace(answer, body=body)


def _uniform_absence(answer: ErrorAnswer) -> ErrorAnswer:
    """The same answer for a scoped key whether access is denied or nothing is there."""
    body = {"error": "There is nothing at this path.", "code": answer.body["code"]}
    if "path" in answer.body:
        body["path"] = answer.body["path"]
    return ErrorAnswer(404, body, answer.headers)
