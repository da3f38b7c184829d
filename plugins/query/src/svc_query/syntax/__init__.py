"""The readable form of a filter: ``year > 1990 and title ~ "tolstoi"``.

``parse_filter`` makes the JSON of it that the routes take. Other text raises ``FilterSyntaxError``, which
knows the place.
"""

from __future__ import annotations

from svc_query.syntax.errors import FilterSyntaxError
from svc_query.syntax.parsing import parse_filter

__all__ = ["FilterSyntaxError", "parse_filter"]
