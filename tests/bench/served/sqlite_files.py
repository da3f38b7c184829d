"""Files in a table of SQLite in the working directory; each PUT is a transaction that is synced at once."""

import sqlite3

import falcon

CONNECTION = sqlite3.connect("files.sqlite", isolation_level=None, check_same_thread=False)
CONNECTION.execute("PRAGMA journal_mode=WAL")
CONNECTION.execute("PRAGMA synchronous=FULL")
CONNECTION.execute("CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, content BLOB)")


class File:
    """One row."""

    def on_put(self, req, resp, path):
        content = req.bounded_stream.read()
        CONNECTION.execute("INSERT OR REPLACE INTO files VALUES (?, ?)", (path, content))
        resp.status = 201
        resp.media = {"path": path, "size": len(content)}

    def on_get(self, req, resp, path):
        row = CONNECTION.execute("SELECT content FROM files WHERE path = ?", (path,)).fetchone()
        if row is None:
            raise falcon.HTTPNotFound
        resp.data = row[0]


app = falcon.App()
app.add_route("/files/{path:path}", File())
