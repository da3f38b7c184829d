"""The readable form of a filter: ``year > 1990 and title ~ "tolstoi"``.

``parse_filter`` makes the JSON of it that the routes take, ``filter_text`` the way back. Text that is not
of this form raises ``FilterSyntaxError``, which knows the place.
"""

from __future__ import annotations

from svc_query.syntax.errors import FilterSyntaxError
from svc_query.syntax.parsing import parse_filter, parse_value
from svc_query.syntax.writing import field_text, filter_text, value_text

__all__ = ["FilterSyntaxError", "field_text", "filter_text", "parse_filter", "parse_value", "value_text"]
