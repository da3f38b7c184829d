"""An issuer as a process of its own: ``python issuer.py`` prints its URL and serves until it is ended.

Beside its two public documents it takes orders: POST /orders/<name> with a JSON object.
"""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

KINDS = {
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "weak": lambda: rsa.generate_private_key(65537, 1024),
}


class Issuer:
    """What the issuer knows."""

    def __init__(self) -> None:
        self.url = ""
        self.is_down = False
        self.counts = {"discovery": 0, "keys": 0}
        self.discovery = {}
        self.private = {}
        self.jwks = {}
        self.number = 0
        self.add("EdDSA")

    def add(self, kind, with_alg=True):
        self.number += 1
        kid = f"key-{self.number}"
        algorithm = "RS256" if kind == "weak" else kind
        key = self.private[kid] = KINDS[kind]()
        jwk = jwt.get_algorithm_by_name(algorithm).to_jwk(key.public_key(), as_dict=True)
        self.jwks[kid] = {**jwk, "kid": kid, "use": "sig", **({"alg": algorithm} if with_alg else {})}
        return kid

    def order(self, name, given):
        if name == "rotate":
            if not given.get("keep"):
                self.jwks.clear()
            return {"kid": self.add(given.get("kind", "EdDSA"), given.get("with_alg", True))}
        if name == "publish":
            self.jwks = {jwk.get("kid"): jwk for jwk in given["keys"]}
        if name == "down":
            self.is_down = given["down"]
        if name == "say":
            self.discovery = given
        if name == "sign":
            kid = given.get("kid") or list(self.private)[-1]
            claims = {"iss": self.url, "aud": "svc", "exp": int(time.time()) + 600, **given["claims"]}
            claims = {claim: value for claim, value in claims.items() if value is not None}
            private = self.private[kid]
            usual = "EdDSA" if isinstance(private, ed25519.Ed25519PrivateKey) else "RS256"
            headers = {"kid": kid, **given.get("headers", {})}
            algorithm = given.get("algorithm") or self.jwks.get(kid, {}).get("alg") or usual
            return {"token": jwt.encode(claims, private, algorithm, headers)}
        return {"counts": self.counts, "keys": list(self.jwks.values())}


class Handler(BaseHTTPRequestHandler):
    issuer = Issuer()
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        issuer = self.issuer
        if self.path == "/.well-known/openid-configuration":
            issuer.counts["discovery"] += 1
            self.answer({"issuer": issuer.url, "jwks_uri": issuer.url + "/keys", **issuer.discovery})
        elif self.path == "/keys":
            issuer.counts["keys"] += 1
            self.answer({"keys": list(issuer.jwks.values())})
        else:
            self.send_error(404)

    def do_POST(self):
        given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(self.issuer.order(self.path.rpartition("/")[2], given), is_order=True)

    def answer(self, value, is_order=False):
        body = json.dumps(value).encode()
        self.send_response(503 if self.issuer.is_down and not is_order else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def main():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Handler.issuer.url = f"http://127.0.0.1:{server.server_address[1]}"
    print(Handler.issuer.url, flush=True)
    threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main()
