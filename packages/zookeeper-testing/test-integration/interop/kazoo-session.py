"""A session of kazoo: every answer and every event, as JSON lines on standard output.

Called with the addresses for the client under test, for a second one, and for passers-by. Between the lines it asks
for faults ({"ask": ...}) and waits for a line on standard input.
"""

import json
import logging
import queue
import sys

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.states import EventType
from kazoo.retry import KazooRetry
from kazoo.security import ACL, CREATOR_ALL_ACL, Id, Permissions, make_acl, make_digest_acl

logging.disable(logging.CRITICAL)
MAIN, OTHER, THIRD = sys.argv[1:4]
BOUND_S = 20
# Longer than any pause of a busy machine: only what the script asks for ends a session.
SESSION_S = 4
OTHERS_SESSION_S = 40
P = "/kazoo"


def say(what, **fields):
    print(json.dumps({"say": what, **fields}, sort_keys=True), flush=True)


def ask(what):
    print(json.dumps({"ask": what}), flush=True)
    sys.stdin.readline()


def plain(value):
    """Without what differs from run to run: transactions and times are the wire's affair."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, KazooException):
        return {"raised": type(value).__name__}
    if hasattr(value, "ephemeralOwner"):
        kept = ["version", "cversion", "aversion", "dataLength", "numChildren"]
        fields = {name: getattr(value, name) for name in kept}
        return {**fields, "ephemeral": value.ephemeralOwner != 0}
    if isinstance(value, ACL):
        return {"perms": value.perms, "scheme": value.id.scheme, "id": value.id.id}
    if isinstance(value, (list, tuple)):
        items = [plain(item) for item in value]
        # The order of children is the server's hash table's.
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    return value


def do(step, function, *args, **kwargs):
    """Says what a call returned or raised, and returns it."""
    try:
        result = function(*args, **kwargs)
    except KazooException as error:
        say(step, raised=type(error).__name__)
        return None
    say(step, result=plain(result))
    return result


class Watch:
    """A one-shot watch that is asked for its event."""

    def __init__(self):
        self.events = queue.Queue()

    def __call__(self, event):
        self.events.put(event)

    def say(self, step):
        event = self.events.get(timeout=BOUND_S)
        say(step, event=event.type, path=event.path)

    def say_silent(self, step):
        say(step, events=self.events.qsize())


def start(address, timeout, **options):
    client = KazooClient(
        hosts=address,
        timeout=timeout,
        connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_jitter=0),
        **options,
    )
    states = queue.Queue()
    client.add_listener(states.put)
    client.start(timeout=BOUND_S)
    return client, states


def say_state(step, states):
    say(step, state=states.get(timeout=BOUND_S))


def creating(zk):
    do("nothing there", zk.exists, P)
    do("create", zk.create, P, b"")
    do("data", zk.create, P + "/data", "grüße".encode())
    do("data is read", zk.get, P + "/data")
    do("empty data is read", zk.get, P)
    do("create and stat", zk.create, P + "/stat", b"1234", include_data=True)
    do("ephemeral", zk.create, P + "/ephemeral", b"", ephemeral=True)
    do("its stat", zk.exists, P + "/ephemeral")
    do("sequential", zk.create, P + "/s-", b"", sequence=True)
    do("another prefix", zk.create, P + "/t-", b"", sequence=True)
    last = do("ephemeral sequential", zk.create, P + "/s-", b"", ephemeral=True, sequence=True)
    do("deleted", zk.delete, last)
    do("numbers are not given again", zk.create, P + "/s-", b"", sequence=True)
    do("no name but the number", zk.create, P + "/stat/", b"", sequence=True)
    do("children", zk.get_children, P)
    do("parent", zk.exists, P)
    do("children and stat", lambda: sorted(zk.get_children(P + "/stat", include_data=True)[0]))
    do("make path", zk.create, P + "/a/b/c", b"", makepath=True)
    do("large", zk.create, P + "/large", b"x" * 1_000_000)
    do("large is read", lambda: len(zk.get(P + "/large")[0]))
    do("sync", zk.sync, P)


def refusals(zk):
    do("exists already", zk.create, P, b"")
    do("exists already, sequential", zk.create, P + "/a", b"", ephemeral=True)
    do("no parent", zk.create, P + "/none/child", b"")
    do("no parent, sequential", zk.create, P + "/none/child-", b"", sequence=True)
    do("ephemerals have no children", zk.create, P + "/ephemeral/child", b"")
    do("no node: get", zk.get, P + "/none")
    do("no node: set", zk.set, P + "/none", b"")
    do("no node: delete", zk.delete, P + "/none")
    do("no node: children", zk.get_children, P + "/none")
    do("no node: get_acls", zk.get_acls, P + "/none")
    do("no node: set_acls", zk.set_acls, P + "/none", [make_acl("world", "anyone", all=True)])
    do("not empty", zk.delete, P + "/a")
    do("set version 0", zk.set, P + "/data", b"one", version=0)
    do("set version 0 again", zk.set, P + "/data", b"two", version=0)
    do("set any version", zk.set, P + "/data", b"two")
    do("delete a wrong version", zk.delete, P + "/data", version=1)
    do("not empty before version", zk.delete, P + "/a", version=7)
    do("delete the right version", zk.delete, P + "/data", version=2)
    do("gone", zk.exists, P + "/data")
    do("the root stays", zk.delete, "/")
    do("counters after all this", zk.exists, P)


def access(zk, other):
    everybody = make_acl("world", "anyone", all=True)
    do("default acl", zk.get_acls, P)
    joe = make_digest_acl("joe", "secret", all=True)
    do("joe's", zk.create, P + "/joes", b"x", acl=[joe])
    do("stranger gets", zk.get, P + "/joes")
    do("stranger sets", zk.set, P + "/joes", b"y")
    do("stranger lists", zk.get_children, P + "/joes")
    do("stranger reads the acl", zk.get_acls, P + "/joes")
    do("stranger creates below", zk.create, P + "/joes/child", b"")
    do("anyone may see that it exists", zk.exists, P + "/joes")
    do("the parent's acl decides over deletes", zk.delete, P + "/joes")
    do("joe's again", zk.create, P + "/joes", b"x", acl=[joe])
    do("auth of nobody", zk.create, P + "/mine", b"", acl=CREATOR_ALL_ACL)
    do("unknown scheme", zk.create, P + "/mine", b"", acl=[ACL(31, Id("nonsense", "x"))])
    do("world but not anyone", zk.create, P + "/mine", b"", acl=[ACL(31, Id("world", "x"))])
    do("digest without a hash", zk.create, P + "/mine", b"", acl=[ACL(31, Id("digest", "x"))])
    do("bad address", zk.create, P + "/mine", b"", acl=[ACL(31, Id("ip", "x"))])
    do("joe says who he is", zk.add_auth, "digest", "joe:secret")
    do("joe gets", zk.get, P + "/joes")
    do("joe creates below", zk.create, P + "/joes/child", b"")
    do("joe's own", zk.create, P + "/mine", b"", acl=CREATOR_ALL_ACL)
    do("with joe's name in it", zk.get_acls, P + "/mine")
    reading = make_digest_acl("joe", "secret", read=True, admin=True)
    do("only reading", zk.set_acls, P + "/mine", [reading])
    do("joe sets", zk.set, P + "/mine", b"")
    do("joe creates", zk.create, P + "/mine/child", b"")
    do("acl of a version gone", zk.set_acls, P + "/mine", [reading], version=0)
    do("acl of the right version", zk.set_acls, P + "/mine", [reading, everybody], version=1)
    do("aversion", zk.exists, P + "/mine")
    do("stranger reads the mixed acl", other.get_acls, P + "/mine")
    address = make_acl("ip", "127.0.0.1", read=True)
    network = make_acl("ip", "10.0.0.0/8", all=True)
    do("by address", zk.create, P + "/address", b"near", acl=[address, network])
    do("near", other.get, P + "/address")
    do("near does not write", other.set, P + "/address", b"")
    do("no deletes below", zk.set_acls, P + "/joes", [make_digest_acl("joe", "secret", create=True)])
    do("joe may not delete below", zk.delete, P + "/joes/child")


def watches(zk, other):
    node = P + "/watched"
    created, absent = Watch(), Watch()
    do("absent", zk.exists, node, watch=created)
    do("absent too", other.exists, node, watch=absent)
    do("created", zk.create, node, b"")
    created.say("told of the own creation")
    absent.say("told of the other's creation")
    data, again, exists = Watch(), Watch(), Watch()
    do("watch data", zk.get, node, watch=data)
    do("watch data, another", zk.get, node, watch=again)
    do("watch existence", zk.exists, node, watch=exists)
    do("the other sets", other.set, node, b"1")
    for watch in (data, again, exists):
        watch.say("told of the change")
    do("the other sets again", other.set, node, b"2")
    do("read after it", zk.get, node)
    data.say_silent("once only")
    children = Watch()
    do("watch children", zk.get_children, node, watch=children)
    do("data is no child", other.set, node, b"3")
    do("read after that", zk.get, node)
    children.say_silent("children did not change")
    do("child", other.create, node + "/child", b"")
    children.say("told of the child")
    do("watch children again", zk.get_children, node, watch=children)
    do("a child's data is no child", other.set, node + "/child", b"3")
    do("grandchildren are not children", other.create, node + "/child/below", b"")
    do("grandchild gone", other.delete, node + "/child/below")
    do("child gone", other.delete, node + "/child")
    children.say("told of the child's end")
    data, children, parent = Watch(), Watch(), Watch()
    do("watch all: data", zk.get, node, watch=data)
    do("watch all: children", zk.get_children, node, watch=children)
    do("watch all: parent", zk.get_children, P, watch=parent)
    do("deleted", other.delete, node)
    data.say("told of the end: data")
    children.say("told of the end: children")
    parent.say("told of the end: parent")
    failed = Watch()
    do("no watch where a get fails", zk.get, node, watch=failed)
    do("created anew", other.create, node, b"")
    do("read after the creation", zk.exists, node)
    failed.say_silent("a failed get watches nothing")
    mine = Watch()
    do("watch own", zk.get, node, watch=mine)
    do("own delete", zk.delete, node)
    mine.say("told of the own delete")


def transactions(zk, other):
    node = P + "/multi"
    data, parent = Watch(), Watch()
    do("absent", zk.exists, node, watch=data)
    do("watch the parent", zk.get_children, P, watch=parent)
    good = zk.transaction()
    good.create(node, b"0")
    good.set_data(node, b"1", version=0)
    good.check(node, version=1)
    good.create(node + "/n-", b"", sequence=True)
    good.create(node + "/n-", b"", ephemeral=True, sequence=True)
    good.create(node + "/gone", b"")
    good.delete(node + "/gone", version=0)
    do("all of it", good.commit)
    data.say("told once")
    parent.say("the parent is told")
    do("afterwards", zk.get, node)
    do("children", zk.get_children, node)
    data = Watch()
    do("watch", zk.get, node, watch=data)
    bad = zk.transaction()
    bad.set_data(node, b"2")
    bad.create(node + "/new", b"")
    bad.check(node, version=7)
    bad.delete(node)
    do("nothing of it", bad.commit)
    do("unchanged", zk.get, node)
    do("not created", zk.exists, node + "/new")
    data.say_silent("and nobody told")
    for name, spoil in (
        ("no node", lambda t: t.delete(P + "/none")),
        ("node exists", lambda t: t.create(node, b"")),
        ("not empty", lambda t: t.delete(node)),
        ("no parent", lambda t: t.create(P + "/none/child", b"")),
        ("check of nothing", lambda t: t.check(P + "/none", version=-1)),
        ("set of nothing", lambda t: t.set_data(P + "/none", b"")),
        ("ephemeral parent", lambda t: t.create(P + "/ephemeral/child", b"")),
    ):
        failing = zk.transaction()
        failing.check(node, version=-1)
        spoil(failing)
        do("fails with " + name, failing.commit)
    theirs = other.transaction()
    theirs.set_data(P + "/joes", b"")
    do("fails with no auth", theirs.commit)
    checks = zk.transaction()
    checks.check(node, version=1)
    checks.check(P, version=-1)
    do("checks alone", checks.commit)
    do("empty", zk.transaction().commit)


def reconnecting(zk, states, other):
    node = P + "/while-away"
    do("before", zk.create, node, b"before")
    data, children = Watch(), Watch()
    do("watch", zk.get, node, watch=data)
    do("watch children", zk.get_children, node, watch=children)
    session = zk.client_id
    ask("cut")
    say_state("cut off", states)
    do("changed meanwhile", other.set, node, b"after")
    ask("heal")
    say_state("back", states)
    # kazoo gives its watches up rather than have the server look what they missed.
    data.say("watch given up")
    children.say("watch of children given up")
    say("same session", same=zk.client_id == session)
    do("after", zk.get, node)
    do("still joe", zk.get, P + "/mine")
    do("own ephemeral is still there", zk.exists, P + "/ephemeral")


def sessions(zk, other):
    node = P + "/leaving"
    third, _ = start(THIRD, OTHERS_SESSION_S)
    do("ephemeral of the third", third.create, node, b"", ephemeral=True)
    gone, again = Watch(), Watch()
    do("watched", other.exists, node, watch=gone)
    identity = third.client_id
    third.stop()
    gone.say("gone with its session's end")
    # The session is over: kazoo is told that it expired, and gets a new one.
    fourth, fourths = start(THIRD, OTHERS_SESSION_S, client_id=identity)
    say("an ended session cannot be had again", same=fourth.client_id == identity)
    do("ephemeral of the fourth", fourth.create, node, b"", ephemeral=True)
    fifth, _ = start(OTHER, OTHERS_SESSION_S, client_id=(fourth.client_id[0], b"x" * 16))
    say_state("the fourth connected", fourths)
    say_state("is cut off by whoever tries its session", fourths)
    say_state("and comes back", fourths)
    say("nor with a wrong password", same=fifth.client_id[0] == fourth.client_id[0])
    fifth.stop()
    do("the rightful owner's node stays", other.exists, node, watch=again)
    fourth.stop()
    again.say("until it leaves")
    stranger, _ = start(THIRD, OTHERS_SESSION_S)
    do("auth of an unknown scheme", stranger.add_auth, "nonsense", "x")
    stranger.stop()


def expiring(zk, states, other):
    node = P + "/expiring"
    do("ephemeral", zk.create, node, b"", ephemeral=True)
    gone, parent = Watch(), Watch()
    do("watched by the other", other.exists, node, watch=gone)
    zk.delete(P + "/ephemeral")
    for name in sorted(other.get_children(P + "/multi")):
        if other.exists(P + "/multi/" + name).ephemeralOwner != 0:
            zk.delete(P + "/multi/" + name)
    do("its parent as well", other.get_children, P, watch=parent)
    session = zk.client_id
    ask("cut")
    say_state("cut off", states)
    ask("expire")
    gone.say("gone")
    parent.say("and gone from the list")
    ask("heal")
    say_state("lost", states)
    say_state("and connected", states)
    say("another session", same=zk.client_id == session)
    do("no ephemeral", zk.exists, node)
    do("usable", zk.create, node, b"again", ephemeral=True)


def main():
    zk, states = start(MAIN, SESSION_S)
    say_state("connected", states)
    other, _ = start(OTHER, OTHERS_SESSION_S)
    # Asks for `envi`, on a connection of its own.
    do("version of the server", zk.server_version)
    creating(zk)
    refusals(zk)
    access(zk, other)
    watches(zk, other)
    transactions(zk, other)
    sessions(zk, other)
    reconnecting(zk, states, other)
    expiring(zk, states, other)
    end = Watch()
    do("last watch", other.exists, P + "/expiring", watch=end)
    zk.stop()
    end.say("gone at the close")
    other.stop()
    say("end")


main()
