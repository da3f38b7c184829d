"""A module that cannot be imported in a child process."""

from __future__ import annotations

import os

from svc_query.api import Parser

if "PATH" not in os.environ:
    raise ImportError("the library of this parser is not there")


class Broken(Parser):
    name = "broken"

    def parse(self, content, source):
        return None
