"""The plugin, by the contracts of svc and of event sinks."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from svc_events.testing import EventSinkContract
from svc_hello.descriptor import PLUGIN
from svc_hello.sink import PostingSink

from svc.plugins import enable, load_plugins
from svc_testing import PluginContract, used_by


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestSink(EventSinkContract):
    plugin_id = PLUGIN.id
    destination = "url"

    @pytest.fixture
    def extension(self):
        return PostingSink()

    @contextmanager
    def receiving(self, receiver, database):
        """Enables the plugin with a receiver that asks the contract what to take."""

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(204 if receiver.take(event["event_id"], event["event_type"]) else 503)
                self.end_headers()

            def log_message(self, *words):
                """Prints nothing."""

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
            threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
            settings = {"url": f"http://127.0.0.1:{web.server_port}/"}
            enable(database, load_plugins(used_by(PLUGIN.id)), PLUGIN.id, settings)
            try:
                yield
            finally:
                web.shutdown()
