"""The Python clients, each as a function from a place and a model to what the client decodes. Started by `interop.py`.

    drivers.py CLIENT < jobs > results

A job is a line of JSON with `id`, `base` (the server's URL), `api` and `model`; a result is a line with the same `id`, the
decoded objects and the error that ended them, if one did. A driver uses its client as its documentation shows.
"""

import asyncio
import concurrent.futures
import importlib.metadata
import json
import logging
import os
import sys
import warnings

AT_ONCE = 24
SECONDS = 20
# Longer than any pause.
SILENT = 3
ASKED = [{"role": "user", "content": "hello"}]
HEADERS = {"accept": "text/event-stream"}


def openai(base, api, model):
    import openai

    with openai.OpenAI(base_url=f"{base}/v1", api_key="x", max_retries=0, timeout=SECONDS) as client:
        yield from openai_calls(client, api, model)


def openai_calls(client, api, model):
    if api == "chat":
        yield from client.chat.completions.create(model=model, messages=ASKED, stream=True)
    elif api == "completions":
        yield from client.completions.create(model=model, prompt="hello", stream=True)
    elif api == "responses":
        yield from client.responses.create(model=model, input="hello", stream=True)
    else:
        yield client.chat.completions.create(model=model, messages=ASKED)


async def openai_async(base, api, model):
    import openai

    async with openai.AsyncOpenAI(base_url=f"{base}/v1", api_key="x", max_retries=0, timeout=SECONDS) as client:
        async for chunk in await client.chat.completions.create(model=model, messages=ASKED, stream=True):
            yield chunk


def anthropic(base, api, model):
    import anthropic

    with anthropic.Anthropic(base_url=base, api_key="x", max_retries=0, timeout=SECONDS) as client:
        yield from client.messages.create(model=model, max_tokens=64, messages=ASKED, stream=True)


def anthropic_helper(base, api, model):
    import anthropic

    with anthropic.Anthropic(base_url=base, api_key="x", max_retries=0, timeout=SECONDS) as client:
        with client.messages.stream(model=model, max_tokens=64, messages=ASKED) as stream:
            yield from stream
            yield stream.get_final_message()


def httpx_sse(base, api, model):
    import httpx
    import httpx_sse

    method, url, body = target(base, api, model)
    with httpx.Client(timeout=SECONDS) as client, httpx_sse.connect_sse(client, method, url, json=body) as source:
        for event in source.iter_sse():
            yield [event.event, event.data, event.id, event.retry]


def sseclient(base, api, model):
    import requests
    import sseclient

    # It reads the connection below HTTP's framing, so that it never sees an end.
    try:
        for event in sseclient.SSEClient(target(base, api, model)[1], session=requests.Session(), timeout=SILENT):
            yield [event.event, event.data, event.id, event.retry]
    except TimeoutError:
        pass


def sseclient_py(base, api, model):
    import requests
    import sseclient

    method, url, body = target(base, api, model)
    with requests.request(method, url, json=body, headers=HEADERS, stream=True, timeout=SECONDS) as response:
        for event in sseclient.SSEClient(response).events():
            yield [event.event, event.data, event.id, event.retry]


def requests_sse(base, api, model):
    import requests_sse

    method, url, body = target(base, api, model)
    with requests_sse.EventSource(url, method=method, json=body, timeout=SECONDS, on_error=ended) as source:
        try:
            for event in source:
                yield [event.type, event.data, event.last_event_id]
        except EOFError:
            pass


async def aiohttp_sse_client(base, api, model):
    from aiohttp_sse_client import client

    method, url, body = target(base, api, model)
    async with client.EventSource(url, option={"method": method}, json=body, on_error=ended) as source:
        try:
            async for event in source:
                yield [event.type, event.data, event.last_event_id]
        except EOFError:
            pass


def ended():
    """Called where a client is about to open an ended stream again."""
    raise EOFError


def litellm(base, api, model):
    import litellm

    where = {"chat": ("openai", f"{base}/v1"), "messages": ("anthropic", base), "gemini": ("gemini", f"{base}/v1beta"),
             "ollama-chat": ("ollama_chat", base)}
    provider, place = where[api]
    for chunk in litellm.completion(model=f"{provider}/{model}", api_base=place, api_key="x", messages=ASKED, stream=True,
                                    timeout=SECONDS, num_retries=0, max_retries=0):
        chunk = chunk.model_dump(mode="json")
        for own in ("created", "id", "model"):
            chunk.pop(own)  # the model is the one asked for, which names the position
        yield chunk


def langchain_openai(base, api, model):
    import langchain_openai

    chain = langchain_openai.ChatOpenAI(model=model, base_url=f"{base}/v1", api_key="x", max_retries=0, timeout=SECONDS,
                                        use_responses_api=api == "responses")
    yield from map(told, chain.stream("hello"))


def langchain_anthropic(base, api, model):
    import langchain_anthropic

    chain = langchain_anthropic.ChatAnthropic(model=model, base_url=base, api_key="x", max_retries=0, timeout=SECONDS)
    yield from map(told, chain.stream("hello"))


def told(message):
    """A message of langchain without the identifier that it makes for each run."""
    message = message.model_dump(mode="json")
    message.pop("id")
    return message


def google_genai(base, api, model):
    from google import genai

    with genai.Client(api_key="x", http_options={"base_url": base, "timeout": SECONDS * 1000}) as client:
        for chunk in client.models.generate_content_stream(model=model, contents="hello"):
            chunk = chunk.model_dump(mode="json", exclude_none=True)
            chunk.pop("sdk_http_response", None)  # holds the date
            yield chunk


def ollama(base, api, model):
    import ollama

    client = ollama.Client(base, timeout=SECONDS)
    if api == "ollama-chat":
        yield from client.chat(model=model, messages=ASKED, stream=True)
    else:
        yield from client.generate(model=model, prompt="hello", stream=True)


def cohere(base, api, model):
    import cohere

    yield from cohere.ClientV2("x", base_url=base, timeout=SECONDS).chat_stream(model=model, messages=ASKED)


def requests_json(base, api, model):
    import requests

    method, url, body = target(base, api, model)
    yield requests.request(method, url, json=body, timeout=SECONDS).json()


def hand_cut(base, api, model):
    """Written by hand: skips empty lines, cuts six characters off the rest, parses, up to `[DONE]`."""
    for line in hand_lines(base, api, model):
        if not line:
            continue
        line = line[6:]
        if line == b"[DONE]":
            break
        yield json.loads(line)


def hand_prefix(base, api, model):
    """Written by hand: takes the lines that begin with `data: `."""
    for line in hand_lines(base, api, model):
        if line.startswith(b"data: ") and line != b"data: [DONE]":
            yield json.loads(line[6:])


def hand_split(base, api, model):
    """Written by hand: splits at empty lines, takes the blocks that begin with `data: `."""
    import requests

    method, url, body = target(base, api, model)
    with requests.request(method, url, json=body, stream=True, timeout=SECONDS) as response:
        held = ""
        for part in response.iter_content(None):
            held += part.decode()
            *blocks, held = held.split("\n\n")
            for block in blocks:
                if block.startswith("data: ") and block != "data: [DONE]":
                    yield json.loads(block[6:])


def hand_lines(base, api, model):
    import requests

    method, url, body = target(base, api, model)
    with requests.request(method, url, json=body, stream=True, timeout=SECONDS) as response:
        yield from response.iter_lines()


def target(base, api, model):
    """How a client that knows no API asks for a stream: method, URL and body."""
    if api == "events":
        return "GET", f"{base}/events/{model}".removesuffix("/-"), None
    return "POST", f"{base}/v1/chat/completions", {"model": model, "messages": ASKED, "stream": api != "document"}


def run(driver, job):
    """Does one job; whatever it raises is its result."""
    objects, error = [], None
    try:
        found = driver(job["base"], job["api"], job["model"])
        if hasattr(found, "__aiter__"):
            asyncio.run(asyncio.wait_for(gather(found, objects), SECONDS + 5))
        else:
            for thing in found:
                objects.append(plain(thing))
    except Exception as problem:
        error = f"{type(problem).__name__}: {problem}"[:300]
    return {"id": job["id"], "objects": objects, "error": error}


async def gather(found, objects):
    async for thing in found:
        objects.append(plain(thing))


def plain(thing):
    return thing.model_dump(mode="json") if hasattr(thing, "model_dump") else thing


def main():
    name, package = sys.argv[1:]
    # What a client prints is not what it decodes.
    out, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    version = importlib.metadata.version(package)
    print(json.dumps({"version": version, "runtime": "Python " + sys.version.split()[0]}), file=out, flush=True)
    driver = globals()[name]
    jobs = map(json.loads, sys.stdin)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in concurrent.futures.as_completed([pool.submit(run, driver, job) for job in jobs]):
            print(json.dumps(done.result(), sort_keys=True, default=str), file=out, flush=True)
    out.flush()
    # Some clients leave threads behind.
    os._exit(0)


if __name__ == "__main__":
    main()
