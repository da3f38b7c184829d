"""What a search asks, as a tree: parsed from the text that a caller typed.

    apple pie          both words
    "apple pie"        one behind the other
    apple -pie         the first, and not the second
    apple OR pear      either; it binds weaker than words beside each other
    app*               words that begin so
    (apple OR pear) pie

The text never reaches the query language of the library.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from svc.errors import InvalidInput

__all__ = ["MAXIMUM_CHARACTERS", "MAXIMUM_WORDS", "Atom", "Either", "Every", "Item", "parse"]

MAXIMUM_CHARACTERS = 4_096
MAXIMUM_WORDS = 128
_MAXIMUM_DEPTH = 16


class Atom(NamedTuple):
    """A word, words in quotes, or the beginning of a word, as it was typed.

    Attributes:
        text: without quotes, and without the star.
        prefix: whether a word that begins so is enough.
    """

    text: str
    prefix: bool = False


class Every(NamedTuple):
    """All of some, and none of others.

    Attributes:
        wanted: at least one.
        unwanted: what must not be there.
    """

    wanted: tuple[Item, ...]
    unwanted: tuple[Item, ...] = ()


class Either(NamedTuple):
    """At least one of some."""

    items: tuple[Item, ...]


Item = Atom | Every | Either


def parse(text: str) -> Item:
    """Returns what a text asks.

    Raises:
        InvalidInput: it can't be read, or asks nothing; ``position`` is the character where that shows.
    """
    if len(text) > MAXIMUM_CHARACTERS:
        _refuse(f"A search has at most {MAXIMUM_CHARACTERS:,} characters.", MAXIMUM_CHARACTERS)
    tokens = _tokens(text)
    if sum(token.kind in ("word", "phrase") for token in tokens) > MAXIMUM_WORDS:
        _refuse(f"A search has at most {MAXIMUM_WORDS} words and phrases.", len(text))
    parser = _Parser(tokens, len(text))
    item = parser.either(0)
    if parser.kind is not None:
        _refuse("There is a ')' without '(' before it.", parser.place)
    return item


class _Token(NamedTuple):
    kind: str
    text: str
    place: int


def _tokens(text: str) -> list[_Token]:
    """Returns the signs, words and phrases of a search; a word holds any sign but quotes and parentheses."""
    tokens: list[_Token] = []
    place = 0
    while place < len(text):
        character = text[place]
        if character.isspace():
            place += 1
        elif character in "()":
            tokens.append(_Token(character, character, place))
            place += 1
        elif character == '"':
            end = text.find('"', place + 1)
            if end < 0:
                _refuse("A '\"' has no second one.", place)
            tokens.append(_Token("phrase", text[place + 1 : end], place))
            place = end + 1
        elif character == "-" and place + 1 < len(text) and _begins_item(text[place + 1]):
            tokens.append(_Token("-", character, place))
            place += 1
        else:
            end = place
            while end < len(text) and not text[end].isspace() and text[end] not in '()"':
                end += 1
            tokens.append(_word(text[place:end], place))
            place = end
    return tokens


def _begins_item(character: str) -> bool:
    return not character.isspace() and character not in ")-"


def _word(text: str, place: int) -> _Token:
    return _Token(text if text in ("OR", "AND") else "word", text, place)


class _Parser:
    def __init__(self, tokens: list[_Token], end: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._end = end

    @property
    def kind(self) -> str | None:
        """What is next; None at the end."""
        return self._tokens[self._next].kind if self._next < len(self._tokens) else None

    @property
    def place(self) -> int:
        return self._tokens[self._next].place if self._next < len(self._tokens) else self._end

    def either(self, depth: int) -> Item:
        items = [self.every(depth)]
        while self.kind == "OR":
            self._next += 1
            items.append(self.every(depth))
        return items[0] if len(items) == 1 else Either(tuple(items))

    def every(self, depth: int) -> Item:
        start = self.place
        wanted: list[Item] = []
        unwanted: list[Item] = []
        while self.kind not in (None, ")", "OR"):
            if self.kind == "AND":
                self._check_and(wanted or unwanted)
            elif self.kind == "-":
                self._next += 1
                unwanted.append(self._item(depth))
            else:
                wanted.append(self._item(depth))
        if not wanted:
            self._refuse_nothing(start, unwanted)
        if len(wanted) == 1 and not unwanted:
            return wanted[0]
        return Every(tuple(wanted), tuple(unwanted))

    def _check_and(self, before: list[Item]) -> None:
        place = self.place
        self._next += 1
        if not before or self.kind in (None, ")", "OR", "AND"):
            _refuse("AND stands between two words.", place)

    def _refuse_nothing(self, start: int, unwanted: list[Item]) -> NoReturn:
        if unwanted:
            _refuse("Beside what must not be there, something must: '-' alone finds nothing.", start)
        if self.kind == "OR" or (self._next and self._tokens[self._next - 1].kind == "OR"):
            _refuse("OR stands between two words.", start)
        _refuse("A word is missing.", start)

    def _item(self, depth: int) -> Item:
        token = self._tokens[self._next]
        if token.kind == "(":
            if depth >= _MAXIMUM_DEPTH:
                _refuse(f"Parentheses are nested at most {_MAXIMUM_DEPTH} deep.", token.place)
            self._next += 1
            item = self.either(depth + 1)
            if self.kind != ")":
                _refuse("A '(' has no ')'.", token.place)
            self._next += 1
            return item
        if token.kind not in ("word", "phrase"):
            _refuse("A word is missing.", token.place)
        self._next += 1
        if token.kind == "word" and token.text.endswith("*"):
            return Atom(token.text.rstrip("*"), prefix=True)
        return Atom(token.text)


def _refuse(message: str, position: int) -> NoReturn:
    raise InvalidInput(message, field="value", position=position)
