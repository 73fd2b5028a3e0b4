"""Functions that are written when they are first read."""

from __future__ import annotations

from threading import Barrier, Thread

from hilo.loop.builder import I64, Builder, Func, Node
from hilo.loop.nodes import Block, Deferred


def test_threads_see_the_same_whole_function() -> None:
    """Two threads ask for it at once: both write it, one function counts, and nobody sees a part of one."""
    halfway = Barrier(2, timeout=10)

    def write(f: Func) -> None:
        b = Builder(f)
        first = b.add(f.params[0], 1)
        halfway.wait()
        b.ret(b.mul(first, 3))

    f = Deferred("f", [("x", I64)], write, I64, ready=True)
    seen: list[tuple[Block, tuple[Node, ...]]] = []
    threads = [Thread(target=lambda: seen.append((f.body, f.params))) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(10)
    assert len(seen) == 2
    for body, params in seen:
        assert body is f.body
        assert params is f.params is not None
        assert body.params is params
        assert body.nodes[-1].kind == "ret"
    assert f.attrs == {"ready": True}
