"""A model server that only answers, as a process: `stub_pod_process.py PORT NAME`."""

import sys

from aiohttp import web


async def answer(request: web.Request) -> web.Response:
    body = await request.read()
    return web.json_response({"pod": sys.argv[2], "bytes": len(body)})


async def health(request: web.Request) -> web.Response:
    return web.Response()


def main() -> None:
    app = web.Application()
    app.router.add_get("/health", health)
    app.router.add_route("*", "/{path:.*}", answer)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)


if __name__ == "__main__":
    main()
