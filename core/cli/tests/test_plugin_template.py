"""``svc plugins new``: sources under names of one's own, all of them or none."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest

from svc_cli.program import main

Svc = Callable[..., int]


@pytest.fixture
def svc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Svc:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["plugins", "new", *words])
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return call


def test_the_names_are_those_of_the_id_everywhere(svc: Svc, tmp_path: Path) -> None:
    assert svc("acme.big-greeter") == 0
    made = tmp_path / "acme-big-greeter"
    assert [path.name for path in tmp_path.iterdir()] == [made.name]
    texts = {path.relative_to(made): path.read_text() for path in made.rglob("*") if path.is_file()}
    for name in ("svc-hello", "svc_hello", "contrib.hello"):
        assert not [path for path, text in texts.items() if name in text or name in str(path)]
    assert "acme.big-greeter = acme_big_greeter.descriptor:PLUGIN" in texts[Path("setup.cfg")]
    assert Path("src/acme_big_greeter/py.typed") in texts
    for path, text in texts.items():
        if path.suffix == ".py":
            ast.parse(text)


def test_what_is_there_is_kept(svc: Svc, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine").mkdir()
    assert svc("acme.greeter", "mine") == 4
    assert "mine exists already" in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


@pytest.mark.parametrize("name", ["greeter", "Acme.greeter", "acme.", "../x.y", "acme/x.y", ""])
def test_an_id_that_no_plugin_may_have_is_refused(svc: Svc, tmp_path: Path, name: str) -> None:
    assert svc(name) == 2
    assert list(tmp_path.iterdir()) == []
