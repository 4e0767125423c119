"""A holder of kazoo's Semaphore, as kazoo's users write it: three leases, and a listener as its documentation advises.

    kazoo-semaphore.py ADDRESS ID

As a holder it writes lines to its output: its process, the number of its term, and a time in ms of the clock that all
processes of a machine share. At that time it has begun to look whether it holds.
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
ADDRESS, ID = sys.argv[1:3]
lost = threading.Event()
zk = KazooClient(
    hosts=ADDRESS,
    timeout=4,
    connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_jitter=0),
)


def listen(state):
    # What kazoo's documentation asks of holders: "SUSPENDED: stop".
    if state != KazooState.CONNECTED:
        lost.set()


zk.add_listener(listen)
zk.start(timeout=20)
term = 0
while True:
    try:
        semaphore = zk.Semaphore("/semaphore", identifier=ID, max_leases=3)
        lost.clear()
        with semaphore:
            term += 1
            while True:
                at = time.clock_gettime_ns(time.CLOCK_MONOTONIC) / 1e6
                if lost.is_set():
                    break
                os.write(1, f"{os.getpid()} {term} {at}\n".encode())
                time.sleep(0.02)
    except KazooException:
        time.sleep(0.05)  # it could not give back what a session that is over has lost
