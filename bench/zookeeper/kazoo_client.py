"""The process of kazoo: the methods of ../src/zookeeper/messages.ts, as workers/client.ts has them."""

import json
import sys
import threading
import time

before_import = time.monotonic()
from kazoo.client import KazooClient  # noqa: E402

import_ms = (time.monotonic() - before_import) * 1e3

DATA = b"z" * 100
LANES = 100
TIMEOUT_MS = 30_000


def numbered_path(parent, index):
    return f"{parent}/{index:010d}"


def open_client(port, session_timeout_ms=TIMEOUT_MS, auth=False):
    auth_data = [("digest", "bench:secret")] if auth else None
    client = KazooClient(
        hosts=f"127.0.0.1:{port}", timeout=session_timeout_ms / 1e3, auth_data=auth_data
    )
    client.start(timeout=20)
    return client


def loop(operations, window, start, completed=None):
    """Each answer starts the next call, on kazoo's own thread for callbacks."""
    state = {"started": 0, "answered": 0}
    lock = threading.Lock()
    finished = threading.Event()
    failure = []

    def next_call():
        with lock:
            if state["started"] == operations:
                return
            index = state["started"]
            state["started"] += 1
        start(index).rawlink(done)

    def done(result):
        if result.exception is not None:
            failure.append(result.exception)
            finished.set()
            return
        if completed is not None:
            completed()
        with lock:
            state["answered"] += 1
            last = state["answered"] == operations
        if last:
            finished.set()
        else:
            next_call()

    for _ in range(min(window, operations)):
        next_call()
    finished.wait()
    if failure:
        raise failure[0]


def rate(operations, run):
    start, start_cpu = time.monotonic(), time.process_time()
    run()
    used = time.process_time() - start_cpu
    seconds = time.monotonic() - start
    return {"perS": operations / seconds, "cpuUs": used * 1e6 / operations}


def median(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


class Methods:
    def __init__(self):
        self.client = None
        self.successes = []
        self.success = threading.Condition()

    def hello(self):
        return {"importMs": import_ms}

    def connect(self, port, sessionTimeoutMs, auth):
        self.client = open_client(port, sessionTimeoutMs, auth)

    def gets(self, path, window, warmUpMs, measureMs):
        def run(operations, completed=None):
            loop(operations, window, lambda _: self.client.get_async(path), completed)

        start = time.monotonic()
        operations = max(100, window)
        while True:
            chunk = time.monotonic()
            run(operations)
            now = time.monotonic()
            per_s = operations / (now - chunk)
            if (now - start) * 1e3 >= warmUpMs:
                break
            operations = max(window, int(per_s * warmUpMs / 4e3))
        operations = max(4 * window, int(per_s * measureMs / 1e3))
        if window > 1:
            return {**rate(operations, lambda: run(operations)), "p50Ms": None}
        latencies = []
        last = [time.monotonic()]

        def sequential():
            last[0] = time.monotonic()
            for _ in range(operations):
                self.client.get(path)
                now = time.monotonic()
                latencies.append((now - last[0]) * 1e3)
                last[0] = now

        return {**rate(operations, sequential), "p50Ms": median(latencies)}

    def creates(self, parent, window, warmUp, operations):
        def run(first, count):
            loop(
                count,
                window,
                lambda index: self.client.create_async(numbered_path(parent, first + index), DATA),
            )

        run(0, warmUp)
        return rate(operations, lambda: run(warmUp, operations))

    def watchDelivery(self, port, path, times):
        writer = open_client(port)
        delays = []
        for _ in range(times):
            told = threading.Event()
            at = []

            def changed(_event, told=told, at=at):
                at.append(time.monotonic())
                told.set()

            self.client.get(path, watch=changed)
            start = time.monotonic()
            written = writer.set_async(path, DATA)
            told.wait()
            delays.append((at[0] - start) * 1e3)
            written.get()
        return {"p50Ms": median(delays)}

    def connectToReady(self, port, path, times):
        durations = []
        for _ in range(times):
            start = time.monotonic()
            client = open_client(port)
            client.get(path)
            durations.append((time.monotonic() - start) * 1e3)
            client.stop()
            client.close()
        return {"p50Ms": median(durations)}

    def watchAll(self, parent, count):
        def changed(_event):
            pass

        loop(
            count,
            LANES,
            lambda index: self.client.get_async(numbered_path(parent, index), watch=changed),
        )

    def probe(self, path):
        threading.Thread(target=self._probe, args=(path,), daemon=True).start()

    def _probe(self, path):
        while True:
            try:
                self.client.get(path)
            except Exception:  # whatever it is: the next one may succeed
                time.sleep(0.001)
                continue
            with self.success:
                self.successes.append(time.monotonic() * 1e3)
                self.success.notify_all()
            time.sleep(0.002)

    def successAfter(self, ms):
        with self.success:
            while True:
                for at in self.successes:
                    if at > ms:
                        self.successes = []
                        return {"atMs": at}
                self.success.wait()

    def cpu(self):
        return {"us": time.process_time() * 1e6}

    def rss(self):
        with open("/proc/self/statm", encoding="ascii") as file:
            return {"bytes": int(file.read().split()[1]) * 4096}


def main():
    methods = Methods()
    for line in sys.stdin:
        call = json.loads(line)
        try:
            answer = {"result": getattr(methods, call["method"])(**call["params"])}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"id": call["id"], **answer}), flush=True)


main()
