"""A Falcon application with one resource, which answers 1 KiB."""

import falcon

BODY = b"x" * 1024


class Resource:
    """The one resource."""

    def on_get(self, req, resp):
        resp.data = BODY


app = falcon.App()
app.add_route("/", Resource())
