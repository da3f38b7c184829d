"""What no source calls or imports: code from data, shells, parsers that run what they read, weak secrets."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for pattern in ("core/*/src", "plugins/*/src", "contrib/*/src", "src")
    for folder in ROOT.glob(pattern)
    for path in folder.rglob("*.py")
    if ".egg-info" not in path.parts and "/svc_cli/template/" not in path.as_posix()
)

UNSAFE_PARSERS = {"pickle", "marshal", "shelve", "dill", "jsonpickle", "yaml", "xml", "lxml", "plistlib"}
"""Formats whose reading runs code, or follows names to other places."""

GUARDED_PARSERS = {"plugins/parsers/src/svc_parsers/safe_yaml.py": {"yaml"}}
"""Modules that import one of them all the same; what they may use of it is asserted below. They run in child
processes that reach no file and no network."""

OF_YAML = {"CSafeLoader", "MappingNode", "SequenceNode", "YAMLError"}

CRYPTOGRAPHY = {"blake3", "cryptography", "hashlib", "hmac", "jwt", "secrets", "ssl"}
"""Where every cryptographic operation comes from; the security page lists them."""

OTHER_CRYPTOGRAPHY = {"Crypto", "Cryptodome", "nacl", "OpenSSL", "authlib", "jose", "rsa", "ecdsa", "crypt"}

BY_CHANCE = {
    "core/client/src/svc_client/transport.py": "how long to wait before a repetition",
    "contrib/traces-otlp/src/svc_traces_otlp/observer.py": "which requests are traced",
    "core/kernel/src/svc/database/attempts.py": "how long to wait before a repetition",
    "core/testing/src/svc_testing/faults.py": "which call fails in a test",
    "core/testing/src/svc_testing/views.py": "when a test collects, the same each time",
    "plugins/auth-magic-link/src/svc_auth_magic_link/delivery.py": "when work begins, to hide whether any is",
    "plugins/files/src/svc_files/chunk_access.py": "in which order files are looked at",
    "plugins/query/src/svc_query/commands/sampling.py": "which files are looked at for a proposal",
    "plugins/query/src/svc_query/testing/index_types.py": "makes histories for tests, the same each time",
    "plugins/query/src/svc_query/testing/library.py": "makes histories for tests, the same each time",
    "plugins/events/src/svc_events/sinks/courier.py": "when a delivery is tried again",
    "plugins/query/src/svc_query/testing/parsers.py": "breaks files for tests, the same each time",
    "plugins/sync/src/svc_sync/job.py": "when a peer is asked again",
    "plugins/tasks/src/svc_tasks/testing/contract.py": "when a process is killed in a test",
}
"""Modules that use ``random``, whose numbers can be foretold, and for what."""

OWN_PROBE = "core/server/src/svc_server/probe.py"
"""Asks the server's own port whether it answers; sends nothing that is secret."""


@functools.cache
def trees() -> list[tuple[str, ast.Module]]:
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(), str(path))) for path in SOURCES]


@functools.cache
def nodes(tree: ast.Module) -> list[ast.AST]:
    return list(ast.walk(tree))


@functools.cache
def imported(tree: ast.Module) -> set[str]:
    """The packages that a module imports, at any depth of nesting."""
    found = set()
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@functools.cache
def calls(tree: ast.Module) -> list[tuple[str, ast.Call]]:
    return [
        (ast.unparse(node.func), node)
        for node in nodes(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
    ]


def test_there_are_sources_to_look_at() -> None:
    assert len(SOURCES) > 200


def test_nothing_runs_text_as_code() -> None:
    forbidden = {"eval", "exec", "compile", "__import__"}
    assert [(path, name) for path, tree in trees() for name, _ in calls(tree) if name in forbidden] == []


def test_no_command_goes_through_a_shell() -> None:
    shells = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"}
    found = [
        (path, name)
        for path, tree in trees()
        for name, call in calls(tree)
        if name in shells
        or any(
            word.arg == "shell" and not (isinstance(word.value, ast.Constant) and word.value.value is False)
            for word in call.keywords
        )
    ]
    assert found == []


def test_nothing_is_read_by_a_parser_that_can_be_made_to_run_or_fetch() -> None:
    found = {path: names for path, tree in trees() if (names := imported(tree) & UNSAFE_PARSERS)}
    assert found == GUARDED_PARSERS


def test_yaml_is_read_by_the_safe_loader_alone() -> None:
    (path,) = GUARDED_PARSERS
    tree = dict(trees())[path]
    used = {
        node.attr
        for node in nodes(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "yaml"
    }
    assert used == OF_YAML
    assert not [node for node in nodes(tree) if isinstance(node, ast.ImportFrom) and node.module == "yaml"]


def test_xml_is_read_without_entities_and_without_anything_elsewhere() -> None:
    forbidden = {"forbid_entities": True, "forbid_external": True}
    readers = [
        (path, call)
        for path, tree in trees()
        if "defusedxml" in imported(tree)
        for name, call in calls(tree)
        if name == "parse"
    ]
    assert [path for path, _ in readers] == ["plugins/parsers/src/svc_parsers/xml_documents.py"]
    for _, call in readers:
        given = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        assert given.items() >= forbidden.items()


def test_cryptography_comes_from_libraries_that_the_security_page_lists() -> None:
    used = set().union(*(imported(tree) for _, tree in trees()))
    assert used & OTHER_CRYPTOGRAPHY == set()
    assert used >= CRYPTOGRAPHY - {"hashlib"}
    section = (
        (ROOT / "docs" / "security.md").read_text().partition("## Cryptography")[2].partition("\n## ")[0]
    )
    assert [name for name in sorted(used & CRYPTOGRAPHY) if f"`{name}`" not in section] == []


def test_no_weak_hash_is_used() -> None:
    weak = ("md5", "sha1", "new")
    found = [
        (path, name)
        for path, tree in trees()
        for name, _ in calls(tree)
        if name in {f"hashlib.{one}" for one in weak} or name.rpartition(".")[2] in ("md5", "sha1")
    ]
    # A client that sends Content-MD5 wants to know whether bytes were lost, and gets nothing else by it.
    assert found == [("core/kernel/src/svc/pipeline/digests.py", "hashlib.md5")]


def test_random_numbers_that_can_be_foretold_make_no_secret() -> None:
    assert {path for path, tree in trees() if "random" in imported(tree)} == set(BY_CHANCE)


@pytest.mark.parametrize("what", ["CERT_NONE", "_create_unverified_context", "check_hostname"])
def test_certificates_of_others_are_checked(what: str) -> None:
    found = {
        path
        for path, tree in trees()
        if any(what in (getattr(node, "attr", None), getattr(node, "id", None)) for node in nodes(tree))
    }
    assert found <= {OWN_PROBE}
