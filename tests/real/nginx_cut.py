"""nginx with `proxy_read_timeout 3s` in front of an engine whose first token takes 10 s: cut without heartline, whole with it.

Once with nginx's default HTTP version towards its upstream (1.0 up to nginx 1.29.6) and once with 1.1; once with headers
that come at once and once with headers that come with the first token (`--commit-after 1s`); alone and 100 at a time.
"""

from concurrent.futures import ThreadPoolExecutor

from kit import CHAT, Answer, Engine, Nginx, Proxy, chat, main, must

VERSIONS = (None, "1.1")
CONCURRENT = 100
# A heartbeat for every third of what nginx allows.
HEARTBEATS = ("--interval", "1s", "--access-log", "off")
LONG = chat(prompt="a long prompt " * 2_000)


def described(version):
    return f"HTTP/{version}" if version else "the default HTTP version"


def expected(engine, body):
    """The events that the engine sends when nothing is in between and nothing is slow."""
    answer = Answer.of(engine.port, f"{CHAT}?script=steady&ttft=0s&itl=0s", body)
    must(answer.status == 200 and answer.whole, "the engine's own answer is not whole")
    return answer.events()


def one(engine_flags, proxy_flags):
    """One request through every combination, all at the same time."""
    engine = Engine("--ttft", "10s", *engine_flags)
    events = expected(engine, chat())

    def through(version, proxy_flags):
        if proxy_flags is None:
            with Nginx(engine.port, version) as nginx:
                return Answer.of(nginx.port, CHAT, chat())
        with Proxy(engine.port, *proxy_flags) as proxy, Nginx(proxy.port, version) as nginx:
            return Answer.of(nginx.port, CHAT, chat())

    cases = [(version, flags) for version in VERSIONS for flags in (None, proxy_flags)]
    with engine, ThreadPoolExecutor(len(cases)) as pool:
        answers = list(pool.map(lambda case: through(*case), cases))
    told = []
    for (version, flags), answer in zip(cases, answers):
        name = described(version)
        if flags is None:
            must(answer.status == 504 or (answer.status == 200 and not answer.whole),
                 f"{name}, without heartline: {answer.status}, whole: {answer.whole}; nginx should have given up")
            told.append(f"{name}: {answer.status if answer.status != 200 else 'a cut'} without")
        else:
            must(answer.status == 200 and answer.whole, f"{name}, with heartline: {answer.status}, whole: {answer.whole}")
            must(answer.events() == events, f"{name}, with heartline: other events: {answer.body[:400]}")
    return "; ".join(told)


def first_token_after_10_s():
    return one((), HEARTBEATS)


def headers_held_back_until_the_first_token():
    return one(("--wait", "first-token"), (*HEARTBEATS, "--commit-after", "1s"))


def crowd(version, engine_flags, proxy_flags):
    """100 long prompts at once on the cliff: the last of them waits 10 s for its turn."""
    with Engine("--script", "cliff", "--prefill", "100ms", "--itl", "5ms", *engine_flags) as engine:
        events = expected(engine, LONG)
        program = Proxy(engine.port, *proxy_flags) if proxy_flags else None
        with Nginx(program.port if program else engine.port, version) as nginx, ThreadPoolExecutor(CONCURRENT) as pool:
            answers = list(pool.map(lambda _: Answer.of(nginx.port, CHAT, LONG), range(CONCURRENT)))
        if program:
            program.kill()
    strange = {answer.status for answer in answers} - {200, 504}
    must(not strange, f"answers with another status than 200 and 504: {strange}")
    whole = [answer for answer in answers if answer.status == 200 and answer.whole]
    must(all(answer.events() == events for answer in whole), "an answer that came whole has other events")
    return len(whole)


def crowds(engine_flags, proxy_flags):
    told = []
    for version in VERSIONS:
        without = crowd(version, engine_flags, None)
        must(0 < without < CONCURRENT, f"{described(version)}, without heartline: {without} of {CONCURRENT} came whole")
        kept = crowd(version, engine_flags, proxy_flags)
        must(kept == CONCURRENT, f"{described(version)}, with heartline: {kept} of {CONCURRENT} came whole")
        told.append(f"{described(version)}: {without} of {CONCURRENT} without, {kept} with")
    return "; ".join(told)


def a_hundred_long_prompts_at_once():
    return crowds((), HEARTBEATS)


def a_hundred_long_prompts_with_headers_held_back():
    return crowds(("--wait", "first-token"), (*HEARTBEATS, "--commit-after", "1s"))


if __name__ == "__main__":
    main(first_token_after_10_s, headers_held_back_until_the_first_token,
         a_hundred_long_prompts_at_once, a_hundred_long_prompts_with_headers_held_back)
