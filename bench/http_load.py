"""A load generator for the server, in its own process:

python -m bench.http_load pulls|statements|pushes|delays URL CONNECTIONS ...
python -m bench.http_load snapshot URL SQL ROWS

It speaks bare HTTP/1.1 over sockets, so that the server is measured, not the client.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable
from urllib.parse import urlsplit


def request(sql: str, path: str = "/query-stream", name: str = "sql") -> bytes:
    body = json.dumps({name: sql}).encode()
    head = [f"POST {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*head, "", ""]).encode() + body


async def read_response(reader: asyncio.StreamReader) -> int:
    """Read one response; returns the size of its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if not head.startswith(b"http/1.1 200"):
        raise RuntimeError((head + await reader.read(1000)).decode())
    if b"content-length:" in head:
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        return length
    total = 0
    while size := int(await reader.readline(), 16):
        await reader.readexactly(size + 2)
        total += size
    await reader.readline()
    return total


async def pulls(url: str, connections: int, seconds: float, sql: str, keys: int) -> None:
    """Pull random keys (`{}` in the statement)."""
    await repeat(url, connections, seconds, lambda _: request(sql.format(random.randrange(keys))))


async def statements(url: str, connections: int, seconds: float, sql: str) -> None:
    """Run a statement on /ksql in which `{}` is the number of the connection."""
    await repeat(url, connections, seconds, lambda connection: request(sql.format(connection), "/ksql", "ksql"))


async def repeat(url: str, connections: int, seconds: float, request_of: Callable[[int], bytes]) -> None:
    """Each connection sends a request after each response; prints requests per second and their latencies."""
    address = urlsplit(url)
    times: list[float] = []
    until = time.perf_counter() + seconds

    async def client(connection: int) -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        while (began := time.perf_counter()) < until:
            writer.write(request_of(connection))
            await read_response(reader)
            times.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*map(client, range(connections)))
    times.sort()
    result = {"rate": len(times) / seconds, "p50": times[len(times) // 2], "p99": times[int(len(times) * 0.99)]}
    print(json.dumps(result), flush=True)


WRITERS: list[asyncio.StreamWriter] = []
"""Keeps writers alive: a garbage-collected writer closes its connection."""


async def open_queries(url: str, connections: int, sql: str) -> list[asyncio.StreamReader]:
    """Start the query once per connection; returns when every header has arrived."""
    address, readers = urlsplit(url), []
    for _ in range(connections):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        WRITERS.append(writer)
        writer.write(request(sql))
        while b"columnNames" not in await reader.readline():
            pass
        readers.append(reader)
    return readers


def counter() -> Callable[[bytes], int]:
    """Counts the rows that end in each chunk of a response, even across a chunk boundary."""
    cut = b""

    def count(part: bytes) -> int:
        nonlocal cut
        found = (cut + part).count(b"]\n")
        cut = part[-1:] if part.endswith(b"]") else b""
        return found

    return count


async def pushes(url: str, connections: int, sql: str, rows: int) -> None:
    """Follow a query until every connection has `rows` rows; prints when all are open, then how long the rows took."""
    began: list[float] = []

    async def follow(reader: asyncio.StreamReader) -> None:
        seen, rows_in = 0, counter()
        while seen < rows:
            content = await reader.read(1 << 18)
            if not content:
                raise RuntimeError("the query ended")
            if not began:
                began.append(time.perf_counter())
            seen += rows_in(content)

    readers = await open_queries(url, connections, sql)
    print("open", flush=True)
    await asyncio.gather(*map(follow, readers))
    print(json.dumps({"seconds": time.perf_counter() - began[0]}), flush=True)


async def snapshot(url: str, sql: str, rows: int) -> None:
    """Read `rows` rows of one response; prints the seconds until the first and until the last."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    began = time.perf_counter()
    writer.write(request(sql))
    first, seen, rows_in = 0.0, 0, counter()
    while seen < rows:
        seen += rows_in(await reader.read(1 << 20))
        first = first or (time.perf_counter() - began if seen else 0.0)
    print(json.dumps({"first": first, "seconds": time.perf_counter() - began}), flush=True)
    writer.close()


async def delays(url: str, connections: int, sql: str, rows: int) -> None:
    """Follow a SUBSCRIBE; prints the delay in milliseconds between the times of rows and their arrival."""
    delays_ms: list[float] = []

    async def follow(reader: asyncio.StreamReader) -> None:
        seen = 0
        while seen < rows:
            line = await reader.readline()
            if line.startswith(b"["):
                time_, diff, *_ = json.loads(line)
                seen += diff > 0
                delays_ms.append(1000 * time.time() - time_)

    readers = await open_queries(url, connections, sql)
    print("open", flush=True)
    await asyncio.gather(*map(follow, readers))
    delays_ms.sort()
    result = {"p50": delays_ms[len(delays_ms) // 2], "p99": delays_ms[int(len(delays_ms) * 0.99)]}
    print(json.dumps(result), flush=True)


def main() -> None:
    what, url, connections, *rest = sys.argv[1:]
    if what == "snapshot":
        asyncio.run(snapshot(url, connections, int(rest[0])))
        return
    if what == "delays":
        asyncio.run(delays(url, int(connections), rest[0], int(rest[1])))
        return
    if what == "pulls":
        asyncio.run(pulls(url, int(connections), float(rest[0]), rest[1], int(rest[2])))
    elif what == "statements":
        asyncio.run(statements(url, int(connections), float(rest[0]), rest[1]))
    else:
        asyncio.run(pushes(url, int(connections), rest[0], int(rest[1])))


if __name__ == "__main__":
    main()
