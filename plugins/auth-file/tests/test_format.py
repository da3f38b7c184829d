"""The file of users: what it may hold, and what is said of everything else."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime

import pytest

from svc.plugin import ScopedRule
from svc_auth_file.format import BadFile, UsersFile, parse_users, user_id_of
from svc_auth_file.keys import hash_of_key, is_key_hash, key_id_of, new_key

NOW_MS = int(datetime(2026, 11, 22, tzinfo=UTC).timestamp() * 1000)
HASH = "blake3:" + "5a" * 32


def parse(text: str) -> UsersFile:
    return parse_users(text.encode(), NOW_MS)


def problems(text: str | bytes) -> tuple[str, ...]:
    with pytest.raises(BadFile) as caught:
        parse_users(text if isinstance(text, bytes) else text.encode(), NOW_MS)
    return caught.value.problems


def with_key(lines: str) -> str:
    return f'[[users]]\nusername = "ann"\n[[users.keys]]\n{lines}\n'


def test_a_user_with_everything() -> None:
    users = parse(f"""
        [[users]]
        username = "Ann"
        user_id = "0198F9A2-6D5C-7B11-8000-2D1F3C5E7A90"
        email = "ann@example.com"
        root = true
        active = false
        groups = ["editors", "readers", "editors"]
        tags = ["staff"]

        [[users.keys]]
        label = "laptop"
        hash = "{HASH}"
        expires = 2027-05-01
        rules = [{{ "/reports/**" = "-r--l---" }}, {{ "/**" = "--------" }}]

        [[users.keys]]
        hash = "blake3:{"6b" * 32}"
        expires = 2027-05-01T12:00:00+02:00
    """)
    (ann,) = users.users
    assert (ann.username, ann.user_id) == ("Ann", "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90")
    assert (ann.email, ann.is_root, ann.is_active) == ("ann@example.com", True, False)
    assert (ann.groups, ann.tags) == (frozenset(("editors", "readers")), ("staff",))
    first, second = ann.keys
    assert first.rules == (ScopedRule("/reports/**", "-r--l---"), ScopedRule("/**", "--------"))
    assert first.expires_ms == int(datetime(2027, 5, 2, tzinfo=UTC).timestamp() * 1000), "with its day"
    assert second.expires_ms == int(datetime(2027, 5, 1, 10, tzinfo=UTC).timestamp() * 1000)
    assert users.key_by_hash[HASH] is users.key_by_id[first.key_id] is first
    assert users.named("ANN") is users.by_id[ann.user_id] is ann
    assert users.named("bob") is None


def test_a_user_needs_a_name_alone() -> None:
    (bob,) = parse('[[users]]\nusername = "bob"').users
    assert (bob.email, bob.is_root, bob.is_active, bob.groups, bob.keys) == (
        None,
        False,
        True,
        frozenset(),
        (),
    )


def test_the_id_of_a_user_follows_from_the_name_in_any_spelling() -> None:
    assert (
        user_id_of("Zoë") == user_id_of("zoe\u0308") == parse('[[users]]\nusername = "ZOË"').users[0].user_id
    )
    assert user_id_of("zoe") != user_id_of("zoë")
    assert user_id_of("ann") == "053ae145-b1bd-59b4-b5dc-a9c252b8631e", "ids stay the same for ever"
    assert uuid.UUID(user_id_of("ann")).version == 5


def test_a_key_is_recognised_by_its_hash_and_has_an_id_that_follows_from_it() -> None:
    key = new_key()
    assert is_key_hash(hash_of_key(key))
    assert hash_of_key(key) != hash_of_key(new_key())
    assert key.split("_")[3] not in hash_of_key(key)
    assert uuid.UUID(key_id_of(hash_of_key(key))).hex == hash_of_key(key)[7:39]
    assert hash_of_key("svc_k_0_0") == (
        "blake3:39d52fb7f7393f1cfef9ea119849618d30939c0a690086529c3d7e61977c82f6"
    ), "files go on to be good"


def test_the_representation_of_a_key_does_not_show_its_hash() -> None:
    assert "5a5a" not in repr(
        parse(with_key(f'hash = "{HASH}"\nexpires = 2027-05-01')).users[0].keys[0]
    ).replace(key_id_of(HASH), "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "It is empty."),
        (b" \n# \xc3\xa9\n", "no user"),
        (b"users = []", "no user"),
        (b"\n\nusername = \xff", "not UTF-8 (at line 3)"),
        ('[[users]]\nusername = "ann\n', "line 2"),
        ("[[users]]\nusername = 'ann'\nusername = 'bob'", "It is not TOML: Cannot overwrite"),
        ("a = " + "[" * 3000, "nested too deeply"),
        ("a = " + "9" * 5000, "It is not TOML"),
        ("[" + "a." * 200_000 + "a]", "A key has more than 2 parts (at line 1)."),
        ("\n" + "a." * 100_000 + "a = 1", "A key has more than 2 parts (at line 2)."),
        ('[[users]]\nx = { a . \'b\' . "\\"" . d\t. e = 1 }', "A key has more than 2 parts (at line 2)."),
        ("a.b = 1", "'a' is nothing"),
        ("users = 1", "[[users]]"),
        ("[users]\nusername = 'ann'", "[[users]]"),
        ("user = 1\n[[users]]\nusername = 'ann'", "'user' is nothing"),
        ("[[users]]\nemail = 'a@b'", "[[users]] 1: Object missing required field `username`"),
        ("[[users]]\nusername = 7", "username: Expected `str`, got `int`"),
        ("[[users]]\nusername = 'ann'\nroot = 'yes'", "('ann'): root: Expected `bool`"),
        ("[[users]]\nusername = 'ann'\nactive = 1", "active: Expected `bool`"),
        ("[[users]]\nusername = 'ann'\ngroups = 'x'", "groups: Expected `array`"),
        ("[[users]]\nusername = 'ann'\ntags = ['x', 1]", "tags[1]: Expected `str`"),
        ("[[users]]\nusername = 'ann'\ngroup = ['x']", "unknown field `group`"),
        ("[[users]]\nusername = 'ann'\nkeys = 3", "keys: Expected `array`"),
        ("[[users]]\nusername = ' ann'", "username: A username has"),
        ("[[users]]\nusername = ''", "username: A username has"),
        ("[[users]]\nusername = 'user:x'", "username: A username is no UUID"),
        ("[[users]]\nusername = 'RooT'", "username: This is the name of root itself"),
        ("[[users]]\nusername = 'ann'\nemail = 'nobody'", "email: An email address"),
        ("[[users]]\nusername = 'ann'\ngroups = ['user:x']", "groups: A name that begins"),
        ("[[users]]\nusername = 'ann'\ntags = ['']", "tags: A tag has"),
        ("[[users]]\nusername = 'ann'\nuser_id = 'x'", "user_id: It is a UUID"),
        ("[[users]]\nusername = 'ann'\nuser_id = '{0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90}'", "It is a UUID"),
        (f"[[users]]\nusername = 'ann'\nuser_id = '{uuid.UUID(int=0)}'", "is root itself"),
        (with_key("expires = 2027-05-01"), "[[users.keys]] 1: Object missing required field `hash`"),
        (with_key(f"hash = '{HASH}'"), "missing required field `expires`"),
        (with_key(f"hash = '{HASH[:-1]}'\nexpires = 2027-05-01"), "hash: It is 'blake3:'"),
        (with_key(f"hash = '{HASH.upper()}'\nexpires = 2027-05-01"), "hash: It is 'blake3:'"),
        (with_key(f"hash = '{HASH}'\nexpires = '2027-05-01'"), "expires: It is a date"),
        (with_key(f"hash = '{HASH}'\nexpires = 2027-05-01T00:00:00"), "expires: A time needs its offset"),
        (with_key(f"hash = '{HASH}'\nexpires = 12:00:00"), "expires: It is a date"),
        (with_key(f"hash = '{HASH}'\nexpires = 2036-12-24"), "within 3650 days"),
        (with_key(f"hash = '{HASH}'\nexpires = 9999-12-31"), "within 3650 days"),
        (
            with_key(
                f"hash = '{HASH}'\nexpires = 2027-05-01\nlabel = 'a\\u0007'".replace("'a", '"a').replace(
                    "7'", '7"'
                )
            ),
            "label: A label",
        ),
        (with_key(f"hash = '{HASH}'\nexpires = 2027-05-01\nowner = 1"), "unknown field `owner`"),
        (with_key(f"hash = '{HASH}'\nexpires = 2027-05-01\nrules = [{{'/a' = 'r'}}]"), "rules[0]: The flags"),
        (
            with_key(f"hash = '{HASH}'\nexpires = 2027-05-01\nrules = [{{'/a' = 1}}]"),
            "rules[0][...]: Expected",
        ),
        (with_key(f"hash = '{HASH}'\nexpires = 2027-05-01\nrules = [{{}}]"), "rules[0]: A rule is"),
        (
            with_key(f"hash = '{HASH}'\nexpires = 2027-05-01\nrules = [{{'a' = '-r------'}}]"),
            "begins with '/'",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str | bytes, words: str) -> None:
    assert words in " ".join(problems(text))


ANN = "[[users]]\nusername = 'ann'\n"
AT = "[[users]] 1 ('ann'), [[users.keys]]"
KEY = f"[[users.keys]]\nhash = '{HASH}'\nexpires = 2027-05-01\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            ANN + ANN.replace("ann", "ANN"),
            "[[users]] 2 ('ANN'): username: [[users]] 1 ('ann') has the same.",
        ),
        (
            f"{ANN}[[users]]\nusername = 'bob'\nuser_id = '{user_id_of('ann')}'",
            "[[users]] 2 ('bob'): user_id: [[users]] 1 ('ann') has the same.",
        ),
        (
            ANN + KEY + KEY,
            f"{AT} 2: hash: {AT} 1 has the same.",
        ),
    ],
)
def test_nothing_stands_there_twice(text: str, words: str) -> None:
    assert problems(text) == (words,)


def test_all_problems_are_listed_up_to_twenty() -> None:
    text = "[[users]]\nusername = ''\nemail = ''\n" * 15
    listed = problems(text)
    assert len(listed) == 21
    assert listed[0].startswith("[[users]] 1 ('')")
    assert listed[-1].startswith("And ")


def test_no_problem_shows_a_hash() -> None:
    text = with_key(f"hash = '{HASH}1'\nexpires = 2027-05-01\nrules = 3")
    assert "5a5a" not in " ".join(problems(text))


def test_an_expired_key_is_no_mistake() -> None:
    (ann,) = parse(with_key(f"hash = '{HASH}'\nexpires = 2020-01-01")).users
    assert ann.keys[0].expires_ms < NOW_MS


def test_dots_in_strings_and_comments_are_no_keys() -> None:
    label = 'ann at a.b.c.d.e.f, g.h.i.j.k.l and \\" m.n.o.p.q.r'
    text = "# see a.b.c.d.e.f\n[[users]]  # a.b.c.d.e.f\nusername = 'a.b.c.d.e.f [a.b.c.d.e.f'\n"
    text += f'[[users.keys]]\nlabel = "{label}"\nhash = "{HASH}"\nexpires = 2027-05-01T12:00:00.5Z\n'
    (ann,) = parse(text).users
    assert ann.username == "a.b.c.d.e.f [a.b.c.d.e.f"
    assert len(ann.keys) == 1


@pytest.mark.parametrize(
    "unit", ['\\"', ' "\\"', "'", '"', '"a".', ",'a'.", "a. ", " ", "a", "-.", '"\\', "[a.b]\n", '\n"a']
)
def test_nothing_takes_much_longer_than_it_is_long(unit: str) -> None:
    began = time.process_time()
    with pytest.raises(BadFile):
        parse((unit * 500_000)[:500_000])
    assert time.process_time() - began < 10


def test_many_users_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(f'[[users]]\nusername = "user{number}"\n' for number in range(5_000))
    assert len(parse_users(text.encode(), time.time_ns() // 1_000_000).users) == 5_000
