"""What docs/alternatives.md says of raised timeouts, kernel keep-alive and sse-starlette, tried behind an nginx that cuts."""

import re
import sys

from kit import CHAT, ROOT, Answer, Engine, Nginx, Program, chat, free_port, main, must, wait_for_port

PAGE = (ROOT / "docs/alternatives.md").read_text()

STARLETTE = """
import asyncio, sys
import uvicorn
from sse_starlette import EventSourceResponse
from starlette.applications import Starlette
from starlette.routing import Route

async def events(_):
    async def slow():
        await asyncio.sleep(5)
        yield "late"
    ping = {"ping": int(sys.argv[2])} if len(sys.argv) > 2 else {}
    return EventSourceResponse(slow(), **ping)

uvicorn.run(Starlette(routes=[Route("/", events)]), host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
"""


def raised_timeouts():
    """The table's directive for nginx, instead of its 3 s."""
    [directive] = re.findall(r"`(proxy_read_timeout 1h;)`", PAGE)
    with Engine("--ttft", "4s") as engine:
        with Nginx(engine.port) as nginx:
            must(not Answer.of(nginx.port, CHAT, chat()).whole, "not cut after 3 s, so there is nothing to raise")
        with Nginx(engine.port, read_timeout=directive) as nginx:
            must(Answer.of(nginx.port, CHAT, chat()).whole, "cut although the limit is an hour")


def keep_alive_below_http_does_not_count():
    [directive] = re.findall(r"`(proxy_socket_keepalive on)`", PAGE)
    with Engine("--ttft", "4s") as engine, Nginx(engine.port, settings=directive + ";") as nginx:
        must(not Answer.of(nginx.port, CHAT, chat()).whole, "TCP keep-alive kept a silent response alive")


def sse_starlettes_ping():
    def served(*ping):
        port = free_port()
        with Program([sys.executable, "-c", STARLETTE, str(port), *ping]):
            wait_for_port(port)
            with Nginx(port) as nginx:
                return Answer.of(nginx.port, "/", method="GET")

    often = served("1")
    must(often.whole and b"data: late" in often.body, f"a ping a second: whole: {often.whole}, {often.body}")
    [form] = re.findall(r"its form, `(: ping - [^`]*)` and a blank line", PAGE)
    shape = re.sub(r"\d+", r"\\d+", re.escape(form)) + "\r\n\r\n"
    must(re.match(shape, often.body.decode()), f"the form is {often.body[:60]}")
    must(not served().whole, "with the default of 15 s it lived through a limit of 3 s")


if __name__ == "__main__":
    main(raised_timeouts, keep_alive_below_http_does_not_count, sse_starlettes_ping)
