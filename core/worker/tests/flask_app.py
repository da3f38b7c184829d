"""A Flask application: a greeting, and for every other request what it was."""

from __future__ import annotations

from flask import Flask, Response, jsonify, request

app = Flask(__name__)


@app.get("/hello/<name>")
def hello(name: str) -> str:
    return f"Hello, {name}!"


@app.get("/numbers/<int:count>")
def numbers(count: int) -> Response:
    return Response((f"{number}\n" for number in range(count)), mimetype="text/plain")


@app.post("/upload")
def upload() -> dict[str, int]:
    return {"bytes": len(request.files["file"].read())}


@app.get("/unread")
@app.post("/unread")
def unread() -> str:
    return "unread"


@app.get("/nothing")
def nothing() -> tuple[str, int]:
    return "never", 204


@app.get("/unchanged")
def unchanged() -> tuple[str, int]:
    return "never", 304


@app.before_request
def echo() -> Response | None:
    """Answers what no route takes, whatever its method is."""
    if request.url_rule is not None:
        return None
    environ = request.environ
    return jsonify(
        method=request.method,
        path=environ["PATH_INFO"],
        query=environ["QUERY_STRING"],
        raw=environ["RAW_URI"],
        headers={name: value for name, value in environ.items() if name.startswith(("HTTP_", "CONTENT_"))},
        protocol=environ["SERVER_PROTOCOL"],
        body=request.get_data().decode("latin-1"),
    )
