"""The process of kazoo's Election: CandidateMethods of ../src/elections-zookeeper/messages.ts."""

import json
import sys
import threading
import time

from kazoo.client import KazooClient

printing = threading.Lock()


def answer(call, **outcome):
    with printing:
        print(json.dumps({"id": call["id"], **outcome}), flush=True)


class Candidate:
    def __init__(self):
        self.client = None
        self.leaves = threading.Event()
        self.left = threading.Event()

    def open(self, call, port, sessionTimeoutMs):
        self.client = KazooClient(hosts=f"127.0.0.1:{port}", timeout=sessionTimeoutMs / 1e3)
        self.client.start(timeout=20)
        answer(call, result=None)

    def campaign(self, call, election):
        self.leaves.clear()
        self.left.clear()

        def work():
            at = time.monotonic() * 1e3
            answer(call, result={"atMs": at, "token": None})
            self.leaves.wait()

        def run():
            self.client.Election(f"/bench-kazoo/{election}", "bench").run(work)
            self.left.set()

        threading.Thread(target=run, daemon=True).start()

    def resign(self, call):
        at = time.monotonic() * 1e3
        self.leaves.set()
        self.left.wait()
        answer(call, result={"atMs": at})


def main():
    candidate = Candidate()
    for line in sys.stdin:
        call = json.loads(line)
        try:
            getattr(candidate, call["method"])(call, **call["params"])
        except Exception as error:
            answer(call, error=f"{type(error).__name__}: {error}")


main()
