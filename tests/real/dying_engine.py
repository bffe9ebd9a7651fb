"""An engine that sends the beginning of an answer and then waits to be killed. Started by `dying`.

    dying_engine.py openai|anthropic between|inside|silent

`between` stops after whole events, `inside` after half a one, `silent` before the headers.
"""

import http.server
import sys

API, PLACE = sys.argv[1:]

EVENTS = {
    "openai": [
        'data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
        '[{"index":0,"delta":{"role":"assistant","content":"%s"},"finish_reason":null}]}\n\n' % word
        for word in ("one", "two", "three")
    ],
    "anthropic": [
        'event: message_start\ndata: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant",'
        '"model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
        'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
        'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"one"}}\n\n',
    ],
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        if PLACE != "silent":
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            text = "".join(EVENTS[API])
            if PLACE == "inside":
                text += EVENTS[API][-1][: len(EVENTS[API][-1]) // 2]
            self.wfile.write(f"{len(text):x}\r\n{text}\r\n".encode())
            self.wfile.flush()
        print("waiting to be killed", flush=True)
        while self.rfile.read1(1_024):
            pass

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(f"listening on 127.0.0.1:{server.server_address[1]}", flush=True)
server.serve_forever()
