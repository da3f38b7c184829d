"""Refresh tokens: one chain for each sign-in, one record for each chain.

A token is ``rt_<chain>_<generation>_<secret of the chain><secret of the generation>``. Each refresh makes the
next generation by one compare-and-swap of the record; of any number of requests with one token, one wins. The
secret of the chain proves that a spent token was one of ours: when it comes back late, somebody has a copy,
and the whole chain ends. The access tokens of a chain name it. That it has ended is written down for as long
as one of them could be good: they end with it, and not where its record is only missing, as on a node of a
cluster that has not heard of it yet.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from svc.errors import AuthRequired, NotFound, PreconditionFailed
from svc.plugin import Confidential, Database, Entry, Path, Transaction, Version
from svc_auth_self.records import absent, decode, encode, now_ms, read, same
from svc_auth_self.secret_hashes import SecretHashes, secret_hashes

__all__ = [
    "CHAINS",
    "ENDED_CHAINS",
    "LONGEST_TOKEN_MS",
    "NOT_VALID",
    "Chain",
    "EndedChain",
    "begin_chain",
    "chains_of",
    "end_chain",
    "has_ended",
    "refresh_chain",
    "require_chain",
    "require_chain_of_spent",
]

CHAINS = "refresh-tokens"
ENDED_CHAINS = "ended-sign-ins"
LONGEST_TOKEN_MS = 7 * 86_400_000
"""How long the setting ``jwt_expiry`` lets an access token be good at most."""
NOT_VALID = "The refresh token is not valid, was used already, or has expired."

_log = logging.getLogger("svc.plugin.auth.self")

_TEXT = re.compile(r"rt_([0-9a-f]{32})_([1-9][0-9]{0,15}|0)_([0-9a-f]{64})([0-9a-f]{64})", re.ASCII)
_MOST_SPENT = 256
_DAY_MS = 86_400_000


class Chain(Confidential, frozen=True, kw_only=True):
    """What is stored of a chain. Its representation does not show the hashes.

    Attributes:
        user_id: who signed in; None with a share key.
        key_id: the key that they used; None when they used none.
        chain_hash: keyed hash of the chain's secret.
        generation: number of the token that is good, from 0; made at ``issued_at``.
        token_hash: keyed hash of that token's own secret.
        spent: (generation, when it was spent) of the tokens that were spent of late. Unix milliseconds.
    """

    shown = ("user_id", "key_id", "generation")

    user_id: str | None
    key_id: str | None
    chain_hash: str
    generation: int
    token_hash: str
    issued_at: int
    expires_at: int
    spent: tuple[tuple[int, int], ...] = ()


class EndedChain(Struct, frozen=True, kw_only=True):
    """What is stored of a chain that was ended, until no access token of it can be good."""

    ended_at: int


class Presented(Confidential, frozen=True):
    """A token whose chain is known, with what the record said. Its representation shows nothing."""

    chain_id: str
    chain: Chain
    entry: Entry
    hashes: SecretHashes
    chain_secret: str


def begin_chain(
    database: Database, transaction: Transaction, *, user_id: str | None, key_id: str | None, days: int
) -> tuple[str, str]:
    """Adds a new chain to a transaction; returns its id and its first token."""
    hashes = secret_hashes(database)
    chain_id, chain_secret, token_secret = secrets.token_hex(16), secrets.token_hex(32), secrets.token_hex(32)
    now = now_ms()
    chain = Chain(
        user_id=user_id,
        key_id=key_id,
        chain_hash=hashes.of(chain_secret),
        generation=0,
        token_hash=hashes.of(token_secret),
        issued_at=now,
        expires_at=now + days * _DAY_MS,
    )
    transaction.put_system((CHAINS, chain_id), encode(chain), condition=absent())
    return chain_id, f"rt_{chain_id}_0_{chain_secret}{token_secret}"


def require_chain(database: Database, token: str, reuse_s: int) -> Presented:
    """Returns the chain of a token that is good now. Commits when the token was stolen.

    Within ``reuse_s`` seconds a spent token does no harm. Every reason of an AuthRequired reads the same.
    """
    parts = _TEXT.fullmatch(token)
    found = None if parts is None else read(database.system(), (CHAINS, parts[1]), Chain)
    if parts is None or found is None:
        raise AuthRequired(NOT_VALID)
    chain, entry = found
    hashes, generation = secret_hashes(database), int(parts[2])
    of_chain, of_token = hashes.fits(parts[3], chain.chain_hash), hashes.fits(parts[4], chain.token_hash)
    presented = Presented(parts[1], chain, entry, hashes, parts[3])
    if not of_chain or chain.expires_at <= now_ms() or generation > chain.generation:
        raise AuthRequired(NOT_VALID)
    if generation < chain.generation:
        _judge_reuse(database, presented, generation, reuse_s)
        raise AuthRequired(NOT_VALID)
    if not of_token:
        raise AuthRequired(NOT_VALID)
    return presented


def require_chain_of_spent(database: Database, token: str, reuse_s: int) -> tuple[str, Chain]:
    """Returns the chain, with its id, of a token that was spent less than ``reuse_s`` seconds ago.

    Only the secret of the chain is compared: that of a spent token is not kept.
    """
    parts = _TEXT.fullmatch(token)
    found = None if parts is None else read(database.system(), (CHAINS, parts[1]), Chain)
    if parts is None or found is None:
        raise AuthRequired(NOT_VALID)
    chain, _ = found
    spent_at = dict(chain.spent).get(int(parts[2]))
    of_chain = secret_hashes(database).fits(parts[3], chain.chain_hash)
    now = now_ms()
    if not of_chain or spent_at is None or now - spent_at >= reuse_s * 1_000 or chain.expires_at <= now:
        raise AuthRequired(NOT_VALID)
    return parts[1], chain


def refresh_chain(database: Database, presented: Presented, *, days: int, reuse_s: int) -> str:
    """Spends a token and returns the next one; AuthRequired if another request was faster. Commits."""
    chain, now = presented.chain, now_ms()
    secret = secrets.token_hex(32)
    spent = [one for one in chain.spent if now - one[1] < reuse_s * 1_000]
    following = msgspec.structs.replace(
        chain,
        generation=chain.generation + 1,
        token_hash=presented.hashes.of(secret),
        issued_at=now,
        expires_at=now + days * _DAY_MS,
        spent=(*spent, (chain.generation, now))[-_MOST_SPENT:],
    )
    try:
        with database.transaction(actor=chain.user_id, message="refresh a token") as transaction:
            transaction.put_system(
                (CHAINS, presented.chain_id), encode(following), condition=same(presented.entry)
            )
    except PreconditionFailed:
        raise AuthRequired(NOT_VALID) from None
    return f"rt_{presented.chain_id}_{following.generation}_{presented.chain_secret}{secret}"


def end_chain(database: Database, chain_id: str, reason: str) -> bool:
    """Ends a chain with its access tokens, and says so in the log; returns whether it was there. Commits."""
    if database.system().get((CHAINS, chain_id)) is None:
        return False
    try:
        with database.transaction(message=f"end a chain of refresh tokens: {reason}") as transaction:
            transaction.delete_system((CHAINS, chain_id))
            transaction.put_system((ENDED_CHAINS, chain_id), encode(EndedChain(ended_at=now_ms())))
    except NotFound:
        return False
    _log.warning("The chain of refresh tokens %s has ended: %s.", chain_id, reason)
    return True


def has_ended(system: Version, chain_id: str) -> bool:
    """Whether a chain was ended. One lookup."""
    return system.get((ENDED_CHAINS, chain_id)) is not None


def _judge_reuse(database: Database, presented: Presented, generation: int, reuse_s: int) -> None:
    """Ends the chain of a spent token that comes back too late for a lost answer or a second tab."""
    spent_at = dict(presented.chain.spent).get(generation)
    if spent_at is not None and now_ms() - spent_at < reuse_s * 1_000:
        return
    end_chain(database, presented.chain_id, "a token that was spent long ago came back; it may be stolen")


def chains_of(system: Version, user_id: str) -> Iterator[Path]:
    """Yields where the chains of a user stand; looks at every chain there is."""
    if system.get((CHAINS,)) is None:
        return
    for name, entry in system.entries((CHAINS,)):
        chain = decode(system, entry, Chain)
        if chain is not None and chain.user_id == user_id:
            yield (CHAINS, name)
