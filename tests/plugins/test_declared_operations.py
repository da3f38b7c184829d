"""The plugin of the page about declaring operations: each of its operations is called in every way."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_client import AsyncClient
from svc_testing import DistributionFactory, Server, run_svc, start_server
from svc_testing.hook_pages import files_of_page

PAGE = Path(__file__).parents[2] / "docs" / "plugins" / "declaring-operations.md"
PLUGINS = ("files", "acme.words")
MOST_LINES = 80


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DistributionFactory]:
    modules = {
        name.removesuffix(".py").replace("/", "."): text
        for name, text in files_of_page(PAGE).items()
        if name.startswith("svc_words/")
    }
    assert len(modules) == 4
    made = DistributionFactory(tmp_path_factory.mktemp("words"))
    made.install(
        "acme-words",
        modules=modules,
        entry_points={"acme.words": "svc_words.descriptor:PLUGIN"},
        version="1.0",
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, distributions: DistributionFactory) -> Iterator[Server]:
    path = tmp_path_factory.mktemp("served") / "x.svcdb"
    with start_server(path, plugins=PLUGINS, env=distributions.environment()) as server:
        assert server.request("PUT", "/files/a.txt", body=b"one two two").status == 201
        yield server


def test_three_operations_a_command_and_a_client_take_few_lines() -> None:
    parts = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = "".join(part for part in parts if "OperationsContract" not in part)
    assert len([line for line in code.splitlines() if line.strip()]) < MOST_LINES


def test_a_program_calls_it(served: Server) -> None:
    (sample,) = re.findall(r"A program calls a server:\n\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(sample, "sample", "exec"), {"url": served.url})


def test_a_program_on_asyncio_calls_it(served: Server) -> None:
    from svc_words.operations import TopQuestion, WordQuery, find_top_word, list_words

    async def ask() -> tuple[list[str], int]:
        async with AsyncClient(served.url) as client:
            query = WordQuery(limit=1)
            words = [each.word async for each in client.items(list_words, ("a.txt",), query)]
            top = await client.call(find_top_word, TopQuestion("/a.txt"))
            with await client.request("GET", "/upper/a.txt") as response:
                assert response.read() == b"ONE TWO TWO"
            return words, top.count

    assert asyncio.run(ask()) == (["one", "two"], 2)


def test_the_shell_calls_it_on_a_file_as_over_a_url(
    served: Server, distributions: DistributionFactory
) -> None:
    for words in (
        ("words", "/a.txt"),
        ("words", "/none"),
        ("api", "GET", "/words/a.txt", "limit:=1"),
        ("api", "GET", "/words/a.txt", "limit:=0"),
        ("api", "POST", "/top-word", "path=/a.txt"),
        ("api", "POST", "/top-word", "path=/a.txt", "more=1"),
    ):
        of_file, of_server = (
            run_svc(*words, "-D", place, env=distributions.environment({"SVC_PLUGINS": ",".join(PLUGINS)}))
            for place in (str(served.database_path), served.url)
        )
        assert of_file == of_server, words


def test_the_document_describes_it(served: Server) -> None:
    document = served.get("/system/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    listing = document["paths"]["/words/{path}"]["get"]
    assert listing["summary"] == "Lists the words of a file in alphabetical order."
    limit = next(each for each in listing["parameters"] if each["name"] == "limit")
    assert (limit["schema"]["maximum"], limit["description"]) == (1000, "Most words of the part.")
    assert listing["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith("/WordPage")
    assert {"400", "401", "403", "404"} <= set(listing["responses"])
    assert document["paths"]["/top-word"]["post"]["requestBody"]["required"]
    streamed = document["paths"]["/upper/{path}"]["get"]
    assert (streamed["x-svc-weight"], *streamed["responses"]["200"]["content"]) == ("streaming", "text/plain")


def test_it_passes_the_contract(distributions: DistributionFactory, tmp_path: Path) -> None:
    (tmp_path / "test_words.py").write_text(files_of_page(PAGE)["tests/test_words.py"])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        env=distributions.environment({"PATH": "/usr/bin:/bin"}),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("body", ["raise RuntimeError('broken')", "import sys; sys.exit(3)"])
def test_operations_that_cannot_be_imported_cost_no_other(tmp_path: Path, body: str) -> None:
    made = DistributionFactory(tmp_path / "broken")
    descriptor = (
        "from svc.plugin import PluginDescriptor\n"
        'PLUGIN = PluginDescriptor(id="acme.broken", version="1", summary="Broken", api=(1, 1),'
        ' implementation="broken_ops.plugin", operations=("broken_ops.operations",))\n'
    )
    modules = {"broken_ops.plugin": descriptor, "broken_ops.operations": body}
    made.install("broken-ops", modules=modules, entry_points={"acme.broken": "broken_ops.plugin:PLUGIN"})
    place = str(tmp_path / "x.svcdb")
    try:
        words = ("api", "GET", "/system/plugins", "-D", place)
        environment = {**made.environment(), "SVC_PLUGINS": "files,acme.broken"}
        assert run_svc("put", "-", "/a", "-D", place, env=environment, stdin=b"a").exit_code == 0
        done = run_svc(*words, env=environment)
        assert done.exit_code == 0, done
        assert "Traceback" not in done.stderr
    finally:
        made.close()
