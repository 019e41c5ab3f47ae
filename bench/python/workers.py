"""W9 of LangGraph: runs of 5 steps, each saved in Postgres before the next begins, on several workers (threads, and processes).

  python workers.py postgres://USER@HOST:PORT/NAME
"""
import multiprocessing
import sys
import threading
import time
import uuid
from typing import TypedDict

STEPS, RUNS = 5, 200


class State(TypedDict):
    count: int


def work(url, runs, threads, out):
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.graph import END, START, StateGraph
    from psycopg_pool import ConnectionPool

    def step(state):
        return {"count": state["count"] + 1}

    g = StateGraph(State)
    for i in range(STEPS):
        g.add_node(f"n{i}", step)
        g.add_edge(START if i == 0 else f"n{i - 1}", f"n{i}")
    g.add_edge(f"n{STEPS - 1}", END)
    with ConnectionPool(url, min_size=threads, max_size=threads, kwargs={"autocommit": True, "prepare_threshold": 0}) as pool:
        saver = PostgresSaver(pool)
        app = g.compile(checkpointer=saver)

        def loop(n):
            for _ in range(n):
                end = app.invoke({"count": 0}, {"configurable": {"thread_id": str(uuid.uuid4())}}, durability="sync")
                assert end["count"] == STEPS

        loop(3)  # warm
        out.wait()
        all_ = [threading.Thread(target=loop, args=(runs // threads,)) for _ in range(threads)]
        for t in all_:
            t.start()
        for t in all_:
            t.join()


def main(url):
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(url) as saver:
        saver.setup()
    for processes, threads in ((1, 1), (1, 4), (2, 4)):
        ready = multiprocessing.Barrier(processes + 1)
        all_ = [multiprocessing.Process(target=work, args=(url, RUNS // processes, threads, ready)) for _ in range(processes)]
        for p in all_:
            p.start()
        ready.wait()
        began = time.perf_counter()
        for p in all_:
            p.join()
            assert p.exitcode == 0
        print(f"BenchmarkW9Workers/processes={processes}/threads={threads}/peer=langgraph-py/store=postgres\t{RUNS / (time.perf_counter() - began):.1f} runs/s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
