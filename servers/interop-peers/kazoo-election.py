"""A member of an election as kazoo's users write it: Election.run, and a listener as its documentation advises.

    kazoo-election.py ADDRESS PATH ID SESSION_MS LOG

Commands come as lines on standard input, and each is answered with one; README.md beside this file says which.
Ends with its input.
"""

import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry

logging.disable(logging.CRITICAL)
ADDRESS, PATH, ID, SESSION_MS, LOG = sys.argv[1:6]
BEAT_S = 0.005

zk = KazooClient(
    hosts=ADDRESS,
    timeout=int(SESSION_MS) / 1000,
    connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_jitter=0),
)
log = os.open(LOG, os.O_WRONLY | os.O_APPEND)
speaking = threading.Lock()


def say(*words):
    # One write: two threads speak.
    with speaking:
        os.write(1, (" ".join(words) + "\n").encode())


class Candidacy:
    """Runs one Election after the other until it resigns."""

    def __init__(self):
        self.resigned = False
        self.renew()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def renew(self):
        # An Election is used once: `cancel` would end its next run, too.
        self.stop = threading.Event()
        self.election = zk.Election(PATH, ID)

    def run(self):
        while not self.resigned:
            try:
                self.election.run(self.lead)
            except KazooException:
                pass  # it could not give back what a session that is over has lost
            if not self.resigned:
                self.renew()

    def node(self):
        while self.election.lock.node is None:
            time.sleep(0.002)
        return self.election.lock.node

    def lead(self):
        """Believes until it is told, by a command or by the listener."""
        stat = zk.exists(PATH + "/" + self.election.lock.node)
        if stat is None:
            return
        token = stat.czxid
        say("leading", str(token))
        kind = "start"
        while not self.stop.is_set():
            at = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
            os.write(log, f"{token} {ID} {os.getpid()} {os.getpid()} {at} {kind}\n".encode())
            kind = "beat"
            self.stop.wait(BEAT_S)
        say("ended")

    def resign(self):
        self.resigned = True
        self.stop.set()
        self.election.cancel()
        self.thread.join()


def contenders():
    while True:
        try:
            return zk.retry(zk.Election(PATH).contenders)
        except KazooException:
            time.sleep(0.01)  # another one is coming


candidacy = None


def listen(state):
    # What kazoo's documentation asks of leaders: "SUSPENDED: stop".
    if state != KazooState.CONNECTED and candidacy is not None:
        candidacy.stop.set()


zk.add_listener(listen)
zk.start(timeout=20)
say("ready")
for line in sys.stdin:
    command = line.strip()
    if command == "join":
        candidacy = Candidacy()
        say("joined", candidacy.node())
    elif command == "resign":
        candidacy.resign()
        say("resigned")
    elif command == "contenders":
        ids = contenders()
        say("contenders", ids[0] if ids else "-", ",".join(ids))
# Without a word to the server: the session runs out, as when it is killed.
os._exit(0)
