"""The queries of the bench on SQLite: the table that is in the working directory, over HTTP."""

import json
import sqlite3

CONNECTION = sqlite3.connect("documents.sqlite", isolation_level=None, check_same_thread=False)
ROWS = "SELECT documents.path, year, price FROM documents"
PARTS = f"{ROWS} JOIN parts ON parts.rowid = documents.rowid WHERE parts MATCH ?"
STATEMENTS = {
    "exact": f"{ROWS} WHERE author = ? ORDER BY path LIMIT 20",
    "range": f"{ROWS} WHERE year = ? AND price < ? ORDER BY price LIMIT 20",
    "part": f"{PARTS} ORDER BY documents.path LIMIT 20",
    "part_any": f"{PARTS} LIMIT 20",
    "words": f"{ROWS} JOIN texts ON texts.rowid = documents.rowid WHERE texts MATCH ? ORDER BY rank LIMIT 20",
}


class Query:
    """Answers a statement by its name."""

    def on_post(self, req, resp):
        asked = json.loads(req.bounded_stream.read())
        found = CONNECTION.execute(STATEMENTS[asked["statement"]], asked["values"]).fetchall()
        resp.media = {"results": [{"path": row[0], "year": row[1], "price": row[2]} for row in found]}


def make_app():
    """The application; falcon is imported where it is served."""
    import falcon

    app = falcon.App()
    app.add_route("/query", Query())
    return app


if __name__ != "__main__":
    app = make_app()
