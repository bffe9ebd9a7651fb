"""Reads event streams with aiohttp, to compare with `cargo bench --bench load`: events a second and per core.

    pip install aiohttp
    HEARTLINE_LOAD_ROLE=flood target/release/deps/load-… 1000 20    # prints where it listens
    python cli/benches/load/aiohttp_reader.py http://127.0.0.1:PORT/ 1000 10

Each line is taken as the usual clients take it: split at line ends, `data:` lines counted, nothing parsed. No silence, gap
or histogram is kept, so the work is less than the harness does.
"""

import asyncio
import resource
import sys
import time

import aiohttp


async def read(session, url, counts, gate):
    async with session.get(url) as response:
        gate.append(1)
        async for line in response.content:
            if line.startswith(b"data:"):
                counts[0] += 1


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def main(url, connections, seconds):
    counts, gate = [0], []
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        tasks = [asyncio.create_task(read(session, url, counts, gate)) for _ in range(connections)]
        while len(gate) < connections:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        before, spent, began = counts[0], cpu(), time.monotonic()
        await asyncio.sleep(seconds)
        events, spent, took = counts[0] - before, cpu() - spent, time.monotonic() - began
        print(f"aiohttp {aiohttp.__version__}: {events / took:.0f} events/s by {spent / took:.2f} cores: "
              f"{events / spent:.0f} events/s per core, {spent / events * 1e6:.1f} µs each")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
