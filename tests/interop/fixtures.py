"""The streams that every client is shown, and the places where each falls silent: data, and how it becomes chunks.

A fixture is an answer of one API; a position says where the engine pauses, so that heartbeats go there. A request names
both as its model, `FIXTURE--POSITION`. The pause is longer than the interval of the proxies under test.
"""

import dataclasses
import json
import random

# Proxies and sims beat every 100 ms, the least they allow.
INTERVAL = 0.1
PAUSE = 0.26
LONG_PAUSE = 1.05

EVENT_STREAM, NDJSON, JSON = "text/event-stream", "application/x-ndjson", "application/json"


@dataclasses.dataclass(frozen=True)
class Fixture:
    """One answer: its events, each a list of lines without their ends; `twin` is the same answer in plainer bytes."""

    api: str
    events: tuple
    kind: str = EVENT_STREAM
    end: str = "\n"
    bom: bool = False
    twin: str = ""
    quick: bool = True

    def positions(self):
        """The positions that this answer has."""
        if self.kind == JSON:
            return ["none", "start", "head"]
        names = ["none", "head", "start", "between", "row", "every", "line", "end", "torn"]
        if self.kind == EVENT_STREAM:
            names += ["inside"]
            if any(len(event) > 1 for event in self.events):
                names += ["lines"]
            if self.end == "\r\n":
                names += ["return", "return-inside"]
        return names

    def chunks(self, position):
        """The answer's bytes cut at the pauses: a list of (bytes, seconds to wait before them). The first wait of `head`
        comes before the headers."""
        spans = self._spans()
        whole = b"".join(b"".join(parts) for parts in spans)
        begins, ends, at = [], [], 0
        for parts in spans:
            begins.append(at)
            at += sum(map(len, parts))
            ends.append(at)
        middle = len(spans) // 2
        mark = 3 if self.bom else 0
        # The event with most lines that is not the first one: what is cut open, if one must be.
        wide = max(range(len(spans)), key=lambda n: (len(spans[n]), -abs(n - middle)))
        lines = [begins[wide] + sum(map(len, spans[wide][: n + 1])) for n in range(len(spans[wide]))]
        turn = len(self.end)
        pause = PAUSE
        if position == "none":
            cuts = []
        elif position in ("start", "head"):
            cuts = [0]
        elif position == "between":
            cuts = [ends[middle - 1]]
        elif position == "row":
            cuts, pause = [ends[middle - 1]], LONG_PAUSE
        elif position == "every":
            cuts = ends[:-1]
        elif position == "line":
            cuts = [lines[0] - turn - 3]
        elif position == "lines":
            cuts = [lines[0]]
        elif position == "inside":
            cuts = [ends[wide] - turn]
        elif position == "return":
            cuts = [ends[wide] - 1]
        elif position == "return-inside":
            cuts = [lines[0] - 1]
        elif position == "end":
            cuts = [len(whole)]
        elif position == "torn":
            dice = random.Random(whole)
            cuts = sorted(dice.sample(range(mark + 1, len(whole)), 4))
        else:
            raise KeyError(position)
        chunks, at = [], 0
        for cut in cuts:
            chunks += [[whole[at:cut], 0], [b"", pause]]
            at = cut
        chunks.append([whole[at:], 0])
        # A pause belongs to the bytes that follow it.
        told, wait = [], 0
        for data, seconds in chunks:
            wait += seconds
            if data:
                told.append((data, wait))
                wait = 0
        if wait:
            told.append((b"", wait))
        if position == "torn":
            told = [(data[n : n + 5], wait if n == 0 else 0) for data, wait in told for n in range(0, len(data), 5)]
        return told

    def _spans(self):
        """The bytes of each event, as a list of its lines with their ends; a blank line ends an event."""
        if self.kind == JSON:
            return [[self.events[0][0].encode()]]
        spans = []
        for event in self.events:
            parts = [(line + self.end).encode() for line in event]
            if self.kind == EVENT_STREAM:
                parts.append(self.end.encode())
            spans.append(parts)
        if self.bom:
            spans[0][0] = b"\xef\xbb\xbf" + spans[0][0]
        return spans


def data(*objects):
    """Events of one data line each."""
    return tuple(["data: " + (o if isinstance(o, str) else json.dumps(o))] for o in objects)


def named(*objects):
    """Events that carry their type in an `event:` line too."""
    return tuple([f"event: {o['type']}", "data: " + json.dumps(o)] for o in objects)


def lines(*objects):
    """Lines of NDJSON."""
    return tuple([json.dumps(o)] for o in objects)


WORDS = ["Once", " upon", " a", " näive", " time"]


def chat(delta, finish=None, **more):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice], **more}


def call(**function):
    return {"tool_calls": [{"index": 0, **({"id": "call_1", "type": "function"} if "name" in function else {}),
                            "function": function}]}


CHAT = data(chat({"role": "assistant", "content": ""}), *(chat({"content": word}) for word in WORDS), chat({}, "stop"), "[DONE]")
TOOLS = data(chat({"role": "assistant", "content": None, **call(name="look", arguments="")}),
             *(chat(call(arguments=part)) for part in ['{"na', 'me": "', 'x"}']), chat({}, "tool_calls"), "[DONE]")
TEXT = data(*({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m",
               "choices": [{"index": 0, "text": word, "logprobs": None, "finish_reason": "stop" if word == WORDS[-1] else None}]}
              for word in WORDS), "[DONE]")
DOCUMENT = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "".join(WORDS)}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 5, "total_tokens": 6}}


def responses():
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []}
    part = {"type": "output_text", "text": "", "annotations": []}
    whole = {**part, "text": "".join(WORDS)}
    done = {**item, "status": "completed", "content": [whole]}
    answer = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m", "status": "in_progress", "output": [],
              "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None, "incomplete_details": None,
              "instructions": None, "metadata": {}, "temperature": 1.0, "top_p": 1.0}
    usage = {"input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
             "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 6}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": answer},
        {"type": "response.in_progress", "response": answer},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.content_part.added", **place, "part": part},
        *({"type": "response.output_text.delta", **place, "delta": word, "logprobs": []} for word in WORDS),
        {"type": "response.output_text.done", **place, "text": whole["text"], "logprobs": []},
        {"type": "response.content_part.done", **place, "part": whole},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": "response.completed", "response": {**answer, "status": "completed", "output": [done], "usage": usage}},
    ]
    return named(*({**event, "sequence_number": n} for n, event in enumerate(events)))


def messages():
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
    return named(
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in WORDS),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )


def gemini(word, last):
    candidate = {"content": {"parts": [{"text": word}], "role": "model"}, "index": 0, **({"finishReason": "STOP"} if last else {})}
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r1",
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 5, "totalTokenCount": 6}}


GEMINI = data(*(gemini(word, word == WORDS[-1]) for word in WORDS))


def cohere():
    delta = {"message": {"content": {"type": "text", "text": ""}}}
    return named(
        {"type": "message-start", "id": "c1", "delta": {"message": {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}}},
        {"type": "content-start", "index": 0, "delta": delta},
        *({"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": word}}}} for word in WORDS),
        {"type": "content-end", "index": 0},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": {"tokens": {"input_tokens": 1, "output_tokens": 5}}}},
    )


def ollama(field):
    def line(word, done):
        said = {"message": {"role": "assistant", "content": word}} if field == "message" else {"response": word}
        spent = {"done_reason": "stop", "total_duration": 5, "eval_count": 5} if done else {}
        return {"model": "m", "created_at": "2026-01-01T00:00:00Z", **said, "done": done, **spent}

    return lines(*(line(word, False) for word in WORDS), line("", True))


PLAIN = tuple([f"data: {word}"] for word in ["one", "two", "drei – vier", "five"])
TYPED = (["event: greeting", "data: hello"], ["data: one", "data: two", "data:", "data: three"],
         ["retry: 3000", "event: greeting", "data: {\"a\": 1}"], ["data: end"])
NUMBERED = tuple([f"id: {n}", f"data: {word}"] for n, word in enumerate(["one", "two", "three", "four"], 1))

FIXTURES = {
    "chat": Fixture("chat", CHAT),
    "chat-crlf": Fixture("chat", CHAT, end="\r\n", twin="chat"),
    "chat-ids": Fixture("chat", tuple([f"id: {n}", *event] for n, event in enumerate(CHAT, 1)), quick=False),
    "chat-tools": Fixture("chat", TOOLS, quick=False),
    "completions": Fixture("completions", TEXT, quick=False),
    "responses": Fixture("responses", responses()),
    "document": Fixture("document", ([json.dumps(DOCUMENT)],), kind=JSON),
    "messages": Fixture("messages", messages()),
    "messages-crlf": Fixture("messages", messages(), end="\r\n", twin="messages", quick=False),
    "gemini": Fixture("gemini", GEMINI, end="\r\n"),
    "gemini-lf": Fixture("gemini", GEMINI, quick=False),
    "cohere": Fixture("cohere", cohere()),
    "ollama-chat": Fixture("ollama-chat", ollama("message"), kind=NDJSON),
    "ollama-generate": Fixture("ollama-generate", ollama("response"), kind=NDJSON, quick=False),
    "events": Fixture("events", PLAIN),
    "events-typed": Fixture("events", TYPED),
    "events-crlf": Fixture("events", TYPED, end="\r\n", twin="events-typed", quick=False),
    "events-cr": Fixture("events", TYPED, end="\r", twin="events-typed", quick=False),
    "events-bom": Fixture("events", PLAIN, bom=True, twin="events", quick=False),
    "events-ids": Fixture("events", NUMBERED),
}

# The positions of the quick set: each rule about where a heartbeat may go has one.
QUICK_POSITIONS = {"head", "start", "between", "inside", "return", "line", "end"}
