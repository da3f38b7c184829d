"""rclone, a program that many people copy files with, reads from svc over plain HTTP."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from svc_blackbox.client import Client, files
from svc_blackbox.server import Server


def rclone(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    beside = Path(sys.executable).parent / "rclone"
    configuration = tmp_path / "rclone.conf"
    configuration.touch()
    command = [str(beside if beside.exists() else "rclone"), "--config", str(configuration), *arguments]
    result = subprocess.run(command, capture_output=True, timeout=60)
    assert result.returncode == 0, (command, result.stdout, result.stderr)
    return result


def test_rclone_copies_urls(shared_server: Server, http: Client, area: str, tmp_path: Path) -> None:
    for name in ("plain.bin", "with space & ünï.bin"):
        content = os.urandom(1_500_000)
        http.store(f"{area}/{name}", content)
        target = tmp_path / "copied"
        rclone(tmp_path, "copyurl", shared_server.url + files(f"{area}/{name}"), str(target))
        assert target.read_bytes() == content


def test_rclone_copies_a_list_of_urls(shared_server: Server, http: Client, area: str, tmp_path: Path) -> None:
    contents = {f"tree/{n % 3}/{n}.bin": os.urandom(1000 * n) for n in range(30)}
    for name, content in contents.items():
        http.store(f"{area}/{name}", content)
    items = http.listing(area, depth=-1, limit=1000)["items"]
    table = tmp_path / "urls.csv"
    lines = [f"{shared_server.url}{files(item['path'])},{item['path'][len(area) + 1 :]}" for item in items]
    table.write_text("\n".join(lines) + "\n")
    rclone(tmp_path, "copyurl", "--urls", str(table), str(tmp_path / "out"))
    for name, content in contents.items():
        assert (tmp_path / "out" / name).read_bytes() == content


def test_rclones_http_remote_reads_files_by_name(
    shared_server: Server, http: Client, area: str, tmp_path: Path
) -> None:
    content = os.urandom(5_000_000)
    http.store(f"{area}/dir/file.bin", content)
    remote = f":http,url='{shared_server.url}/files/':{area.strip('/')}/dir/file.bin"
    rclone(
        tmp_path,
        "copyto",
        "--multi-thread-cutoff",
        "1M",
        "--multi-thread-streams",
        "4",
        remote,
        str(tmp_path / "file.bin"),
    )
    assert (tmp_path / "file.bin").read_bytes() == content
    part = rclone(tmp_path, "cat", "--offset", "1000", "--count", "10", remote)
    assert part.stdout == content[1000:1010]


def test_rclone_and_wget_walk_a_directory(
    shared_server: Server, http: Client, area: str, tmp_path: Path
) -> None:
    contents = {"a & b<i>.txt": b"a", "sub/\u00e9 #1?.txt": b"e", "sub/deep/c;d.bin": bytes(9)}
    for name, content in contents.items():
        http.store(f"{area}/tree/{name}", content)
    url = shared_server.url + files(f"{area}/tree/")
    html = ("--http-headers", "Accept,text/html", "--http-url", url)
    rclone(tmp_path, "copy", *html, ":http:", str(tmp_path / "rclone"))
    wget = ("wget", "-q", "-r", "-np", "-nH", f"--cut-dirs={url.count('/') - 3}", "-e", "robots=off")
    accept = "--header=Accept: text/html"
    subprocess.run([*wget, accept, "-P", tmp_path / "wget", url], check=True, timeout=60)
    for name, content in contents.items():
        assert (tmp_path / "rclone" / name).read_bytes() == content
        assert (tmp_path / "wget" / name).read_bytes() == content
