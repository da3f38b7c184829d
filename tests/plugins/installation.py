"""Distributions as strangers get them: wheels, installed into a new virtual environment.

The environments of a run share bytecode: each would compile all that it imports anew. uv installs links to
the files of its cache, so that a file is the same in each of them; Python compiles one that is another anew.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

__all__ = ["ROOT", "Installation", "Wheelhouse", "members"]

ROOT = Path(__file__).parents[2]
_BUILD = """
import os
import sys
from setuptools import build_meta

target, *sources = sys.argv[1:]
for source in sources:
    child = os.fork()
    if child == 0:
        answer = os.dup(1)
        os.dup2(2, 1)
        os.chdir(source)
        os.write(answer, build_meta.build_wheel(target).encode() + b"\\n")
        sys.stderr.flush()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit("It does not build: " + source)
"""
"""Builds wheels of setuptools, which is imported once: it takes longer than to build one."""


class Installation:
    """A virtual environment, made by uv where that is at hand."""

    def __init__(self, directory: Path) -> None:
        self.python = str(directory / "bin" / "python")
        self._directory = directory
        uv = shutil.which("uv")
        if uv is not None:
            _run([uv, "venv", "--quiet", "--python", sys.executable, str(directory)])
            self._installer = [
                uv,
                "pip",
                "install",
                "--quiet",
                "--link-mode=symlink",
                "--python",
                self.python,
            ]
        else:
            _run([sys.executable, "-m", "venv", str(directory)])
            self._installer = [self.python, "-m", "pip", "install", "--quiet"]

    def add(self, *wheels: str) -> None:
        """Installs distributions."""
        _run([*self._installer, *wheels])
        (packages,) = self._directory.glob("lib/python*/site-packages")
        for name, folders, files in os.walk(packages):
            place = Path(name)
            if "__pycache__" not in folders and any(file.endswith(".py") for file in files):
                shared = _bytecode() / place.relative_to(packages)
                shared.mkdir(parents=True, exist_ok=True)
                (place / "__pycache__").symlink_to(shared)


class Wheelhouse:
    """The wheels of svc's distributions, and of others; each is built once.

    Args:
        directory: where they, their sources and the environment that builds them stand.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._built: dict[str, str] = {}
        builder = Installation(directory / "builder")
        builder.add("setuptools>=77")
        self._python = builder.python

    def wheels(self, *names: str) -> list[str]:
        """Returns the wheels of distributions of this repository, by their folders."""
        missing = [name for name in names if name not in self._built]
        copies = [_copy_source(name, self._directory / "sources" / name) for name in missing]
        self._built.update(zip(missing, self.build(*copies), strict=True))
        return [self._built[name] for name in names]

    def build(self, *sources: Path) -> list[str]:
        """Returns the wheels of distributions that stand anywhere."""
        words = [self._python, "-c", _BUILD, str(self._directory), *map(str, sources)]
        return [str(self._directory / name) for name in _run(words).split()]


def members() -> list[str]:
    """Returns the folders of all distributions that svc consists of; ``svc`` is the one of the whole."""
    found = [path for folder in ("core", "plugins") for path in (ROOT / folder).glob("*/setup.cfg")]
    return [*sorted(str(path.parent.relative_to(ROOT)) for path in found), "svc"]


def _copy_source(name: str, target: Path) -> Path:
    """Copies one of svc's distributions, so that building it writes nothing beside the original."""
    source = ROOT if name == "svc" else ROOT / name
    target.mkdir(parents=True)
    for part in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        if (source / part).exists():
            shutil.copy(source / part, target)
    shutil.copytree(
        source / "src", target / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
    )
    # The workspace that says where its other members are is not there any more.
    project = target / "pyproject.toml"
    project.write_text(project.read_text(encoding="utf-8").partition("[tool.uv")[0], encoding="utf-8")
    return target


@functools.cache
def _bytecode() -> Path:
    """A folder in place of the ``__pycache__`` of all environments, to the end of the run."""
    directory = tempfile.mkdtemp(prefix="svc-bytecode-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _run(words: list[str]) -> str:
    completed = subprocess.run(words, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stderr
    return completed.stdout
