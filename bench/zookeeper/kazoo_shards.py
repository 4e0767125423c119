"""The process of kazoo's SetPartitioner: MemberMethods of ../src/shards/messages.ts."""

import json
import sys
import threading
import time

from kazoo.client import KazooClient

printing = threading.Lock()
# How long it waits after a change before it shares out again. Its default is 30 s.
TIME_BOUNDARY_S = 1


def answer(call, **outcome):
    with printing:
        print(json.dumps({"id": call["id"], **outcome}), flush=True)


class Member:
    def __init__(self):
        self.events = []
        self.shards = []

    def join(self, call, port, leaseMs, name, shards):
        client = KazooClient(hosts=f"127.0.0.1:{port}", timeout=leaseMs / 1e3)
        client.start(timeout=20)
        path = f"/bench-kazoo/{name}"
        partitioner = client.SetPartitioner(
            path, set=tuple(range(shards)), time_boundary=TIME_BOUNDARY_S
        )
        threading.Thread(target=self.run, args=(partitioner,), daemon=True).start()
        answer(call, result=None)

    def run(self, partitioner):
        while True:
            if partitioner.release:
                self.write(False)
                partitioner.release_set()
            elif partitioner.acquired:
                if not self.shards:
                    self.shards = list(partitioner)
                    self.write(True)
                time.sleep(0.002)
            elif partitioner.allocating:
                partitioner.wait_for_acquire()
            else:
                sys.exit("the partitioner has failed")

    def write(self, is_owned):
        at = time.monotonic() * 1e3
        for shard in self.shards:
            self.events.append({"shard": shard, "atMs": at, "isOwned": is_owned})
        if not is_owned:
            self.shards = []

    def owned(self, call):
        answer(call, result=len(self.shards))

    def log(self, call):
        answer(call, result=self.events)


def main():
    member = Member()
    for line in sys.stdin:
        call = json.loads(line)
        try:
            getattr(member, call["method"])(call, **call["params"])
        except Exception as error:
            answer(call, error=f"{type(error).__name__}: {error}")


main()
