"""A candidate in an election of kazoo's: the messages of ../src/cutoff/messages.ts.

It leads while its leader function runs and kazoo has not told it that the connection is gone: the
most careful use of kazoo's Election there is.
"""

import json
import logging
import sys
import threading
import time

from kazoo.client import KazooClient

logging.basicConfig(level=logging.CRITICAL)
SAMPLE_S = 0.002


def now_ms():
    return time.monotonic() * 1e3


class Candidate:
    def __init__(self, plan):
        self.plan = plan
        self.spells = []
        self.longest_gap_ms = 0
        self.connected = threading.Event()
        self.print_lock = threading.Lock()
        self.client = KazooClient(hosts=plan["hosts"], timeout=plan["timeoutMs"] / 1e3)
        self.client.add_listener(self.listen)

    def tell(self, type, **fields):
        with self.print_lock:
            print(json.dumps({"type": type, **fields}), flush=True)

    def listen(self, state):
        if state == "CONNECTED":
            self.connected.set()
        else:
            self.connected.clear()
        self.tell("state", atMs=now_ms(), state=str(state).lower())

    def campaign(self):
        self.client.start(timeout=20)
        # kazoo keeps the negotiated timeout to itself.
        self.tell("connected", timeoutMs=self.client._session_timeout)
        election = self.client.Election(self.plan["election"], self.plan["id"])
        while True:
            election.run(self.lead)

    def lead(self):
        last = now_ms()
        spell = {"fromMs": last, "lastMs": last, "untilMs": None, "token": "0"}
        self.spells.append(spell)
        self.tell("leading", atMs=last)
        while self.connected.is_set():
            now = now_ms()
            self.longest_gap_ms = max(self.longest_gap_ms, now - spell["lastMs"])
            spell["lastMs"] = now
            time.sleep(SAMPLE_S)
        spell["untilMs"] = spell["lastMs"]
        self.tell("over", atMs=spell["lastMs"])


candidate = Candidate(json.loads(sys.argv[1]))


def campaign():
    try:
        candidate.campaign()
    except Exception as error:
        candidate.tell("failed", message=f"{type(error).__name__}: {error}")


threading.Thread(target=campaign, daemon=True).start()
for line in sys.stdin:
    if line.strip() == "report":
        candidate.tell(
            "report", spells=candidate.spells, longestGapMs=candidate.longest_gap_ms
        )
