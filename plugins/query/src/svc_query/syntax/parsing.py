"""From text to the JSON of a filter, by recursive descent.

filter      = alternative { "or" alternative }
alternative = condition { "and" condition }
condition   = "not" condition | "(" filter ")" | "*" | leaf
leaf        = field [ "not" ] operator [ value ] [ options ]
"""

from __future__ import annotations

from typing import Any

from svc_query.syntax.errors import FilterSyntaxError
from svc_query.syntax.tokens import Kind, Token, tokens_of
from svc_query.syntax.words import CONNECTIVES, POSITIONAL_OPTIONS, SIGNS, WORDS, known_words

__all__ = ["MAXIMUM_DEPTH", "Filter", "parse_filter"]

Filter = dict[str, Any]

MAXIMUM_DEPTH = 100
"""How deep parentheses, ``not`` and lists may nest here; a query allows less."""

_CONSTANTS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(("field", "op", "value"))


def parse_filter(text: str) -> Filter:
    """Returns the JSON of a filter; ``{"and": []}``, which everything matches, for an empty text.

    Raises FilterSyntaxError, which says what was expected where.
    """
    parser = _Parser(text)
    if parser.here.kind is Kind.END:
        return {"and": []}
    found = parser.filter()
    parser.end("'and', 'or' or the end")
    return found


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokens_of(text)
        self._place = 0
        self._depth = 0

    @property
    def here(self) -> Token:
        return self._tokens[self._place]

    def filter(self) -> Filter:
        return self._joined("or", lambda: self._joined("and", self._condition))

    def value(self) -> Any:
        token = self.here
        if token.kind in (Kind.STRING, Kind.NUMBER, Kind.TIME):
            return self._take().value
        if token.kind is Kind.WORD and token.text.lower() in _CONSTANTS:
            return _CONSTANTS[self._take().text.lower()]
        if self._is_sign("["):
            return self._list("[", "]")
        if self._is_sign("{"):
            return self._object()
        if token.kind is Kind.WORD and token.text.lower() not in CONNECTIVES:
            raise self._wrong(f'A value was expected here; a string stands in quotes: "{token.text[:40]}".')
        raise self._expected("a value (a string in quotes, a number, a time, true, false or null)")

    def end(self, expected: str) -> None:
        if self.here.kind is not Kind.END:
            raise self._expected(expected)

    # -- filters

    def _joined(self, word: str, part: Any) -> Filter:
        parts = [part()]
        while self._is_word(word):
            self._take()
            parts.append(part())
        return parts[0] if len(parts) == 1 else {word: parts}

    def _condition(self) -> Filter:
        self._enter()
        try:
            if self._is_word("not"):
                self._take()
                return {"not": self._condition()}
            if self._is_sign("("):
                opened = self._take()
                inner = self.filter()
                self._close(")", opened, "'and', 'or' or ')'")
                return inner
            if self._is_sign("*"):
                self._take()
                return {"and": []}
            return self._leaf()
        finally:
            self._depth -= 1

    def _leaf(self) -> Filter:
        token = self.here
        is_field = token.kind is Kind.NAME or (
            token.kind is Kind.WORD and token.text.lower() not in CONNECTIVES
        )
        if not is_field:
            if token.kind is Kind.STRING:
                raise self._wrong(
                    "The name of a field was expected here; one with blanks stands in `back quotes`."
                )
            raise self._expected("the name of a field, 'not' or '('")
        self._take()
        field = token.text if token.kind is Kind.WORD else token.value
        if self._is_word("not"):
            self._take()
            return {"not": self._comparison(field, token, negated=True)}
        return self._comparison(field, token)

    def _comparison(self, field: str, start: Token, *, negated: bool = False) -> Filter:
        token = self.here
        if token.kind is Kind.SIGN:
            if token.text == ":":
                return self._named_operator(field)
            if token.text == "!~":
                self._take()
                return {"not": self._with_options({"field": field, "op": "contains", "value": self.value()})}
            if token.text in SIGNS:
                self._take()
                leaf = {"field": field, "op": SIGNS[token.text], "value": self.value()}
                return self._with_options(leaf)
        if token.kind is Kind.WORD:
            words = self._operator_words()
            if words is not None:
                return self._word_operator(field, words)
        if token.kind is Kind.WORD and token.text.lower() not in CONNECTIVES:
            raise self._wrong(
                f"{token.shown} is no operator; there are {known_words()}, and :name for others."
            )
        after = "'not'" if negated else f"the field {start.shown}"
        raise self._expected(f"an operator after {after} ({known_words()})")

    def _operator_words(self) -> tuple[str, ...] | None:
        for length in (2, 1):
            tokens = self._tokens[self._place : self._place + length]
            words = tuple(token.text.lower() for token in tokens if token.kind is Kind.WORD)
            if len(words) == length and words in WORDS:
                self._place += length
                return words
        return None

    def _word_operator(self, field: str, words: tuple[str, ...]) -> Filter:
        leaf: Filter = {"field": field, "op": WORDS[words]}
        if words in (("exists",), ("missing",)):
            return {**leaf, "value": words == ("exists",)}
        if words == ("is",):
            return self._is_null(field)
        if words == ("in",):
            if self._is_sign("["):
                return {**leaf, "value": self._list("[", "]")}
            if not self._is_sign("("):
                raise self._expected("'(' and a list of values")
            return {**leaf, "value": self._list("(", ")")}
        leaf["value"] = self.value()
        if words == ("between",):
            if not self._is_word("and"):
                raise self._expected("'and' and the upper bound of 'between'")
            self._take()
            leaf["value2"] = self.value()
        return self._with_options(leaf)

    def _is_null(self, field: str) -> Filter:
        op = "eq"
        if self._is_word("not"):
            self._take()
            op = "ne"
        if not self._is_word("null"):
            raise self._expected("'null' or 'not null' after 'is'")
        self._take()
        return {"field": field, "op": op, "value": None}

    def _named_operator(self, field: str) -> Filter:
        """``field :name value (option: value)``: any operator, of whatever plugin."""
        self._take()
        if self.here.kind not in (Kind.WORD, Kind.NAME):
            raise self._expected("the name of an operator after ':'")
        token = self._take()
        leaf: Filter = {"field": field, "op": token.text if token.kind is Kind.WORD else token.value}
        if self._begins_value():
            leaf["value"] = self.value()
        return self._with_options(leaf)

    # -- options

    def _with_options(self, leaf: Filter) -> Filter:
        if not self._is_sign("("):
            return leaf
        opened = self._take()
        positional = list(POSITIONAL_OPTIONS.get(leaf["op"], ()))
        while True:
            self._option(leaf, positional)
            if not self._is_sign(","):
                break
            self._take()
        self._close(")", opened, "',' or ')'")
        return leaf

    def _option(self, leaf: Filter, positional: list[str]) -> None:
        token, following = self.here, self._tokens[min(self._place + 1, len(self._tokens) - 1)]
        named = token.kind in (Kind.WORD, Kind.NAME) and following.kind is Kind.SIGN and following.text == ":"
        if named:
            self._take()
            self._take()
            name = token.text if token.kind is Kind.WORD else token.value
            value = self._option_value()
        else:
            value = self._option_value()
            name = self._positional_name(value, positional, token)
        if name in _RESERVED or name in leaf:
            raise self._wrong(f"{name!r} is given twice.", token)
        if name in positional:
            positional.remove(name)
        leaf[name] = value

    def _option_value(self) -> Any:
        token = self.here
        if token.kind is Kind.WORD and token.text.lower() not in _CONSTANTS:
            return self._take().text
        return self.value()

    def _positional_name(self, value: Any, positional: list[str], token: Token) -> str:
        if "algorithm" in positional and isinstance(value, str) and value != "auto":
            return "algorithm"
        if not positional:
            raise self._wrong("An option is written with its name: (name: value).", token)
        return positional[0]

    # -- values

    def _list(self, opening: str, closing: str) -> list[Any]:
        self._enter()
        opened = self._take()
        values: list[Any] = []
        while not self._is_sign(closing):
            values.append(self.value())
            if not self._is_sign(","):
                break
            self._take()
            if self._is_sign(closing):
                raise self._expected("a value after ','")
        self._close(closing, opened, f"',' or '{closing}'")
        self._depth -= 1
        return values

    def _object(self) -> dict[str, Any]:
        self._enter()
        opened = self._take()
        members: dict[str, Any] = {}
        while not self._is_sign("}"):
            if self.here.kind is not Kind.STRING:
                raise self._expected("the name of a member, in quotes, or '}'")
            name = self._take()
            if name.value in members:
                raise self._wrong(f"{name.shown} is given twice.", name)
            if not self._is_sign(":"):
                raise self._expected("':' and a value")
            self._take()
            members[name.value] = self.value()
            if not self._is_sign(","):
                break
            self._take()
        self._close("}", opened, "',' or '}'")
        self._depth -= 1
        return members

    def _begins_value(self) -> bool:
        token = self.here
        if token.kind is Kind.WORD:
            return token.text.lower() in _CONSTANTS
        if token.kind is Kind.SIGN:
            return token.text in ("[", "{")
        return token.kind in (Kind.STRING, Kind.NUMBER, Kind.TIME)

    # -- tokens

    def _take(self) -> Token:
        token = self.here
        if token.kind is not Kind.END:
            self._place += 1
        return token

    def _close(self, sign: str, opened: Token, expected: str) -> None:
        if self._is_sign(sign):
            self._take()
            return
        if self.here.kind is Kind.END:
            raise self._wrong(f"The {opened.shown} that begins here has no closing '{sign}'.", opened)
        raise self._expected(expected)

    def _is_sign(self, sign: str) -> bool:
        return self.here.kind is Kind.SIGN and self.here.text == sign

    def _is_word(self, word: str) -> bool:
        return self.here.kind is Kind.WORD and self.here.text.lower() == word

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAXIMUM_DEPTH:
            raise self._wrong(f"This nests deeper than {MAXIMUM_DEPTH} levels.")

    def _expected(self, what: str) -> FilterSyntaxError:
        return self._wrong(f"Expected {what}, found {self.here.shown}.")

    def _wrong(self, message: str, token: Token | None = None) -> FilterSyntaxError:
        return FilterSyntaxError(message, self._text, (token or self.here).start)
