# SPDX-License-Identifier: Apache-2.0
"""Several real nodes and a client, each in a network namespace of its own, on one bridge in the
namespace of the test. The test itself is on the bridge as HUB: it reaches every node whatever
is cut, and servers that it starts there are reached from every node."""
import atexit
import concurrent.futures
import contextlib
import itertools
import os
import signal
import socket
import struct
import subprocess

from lab import Netns, run, wait_for
from node import BUILD, UID, Node

HUB = "10.77.0.1"
CLIENT = "10.77.0.2"
NODES = "10.77.0.%d"  # from 11 on
PREFIX = "/24"
MOST = 16
BRIDGE = "bridge"
INSIDE = "eth0"
ETH_P_ARP = 0x0806
FORCED_DRAIN = 8  # of the administrative state of a server: management.txt, show servers state

# Shorter than in the product.
TUNABLES = {"sync_round_ms": 100, "sync_health_ms": 1000, "sync_again_ms": 1000}
# For tests that cut links, and wait until that is noticed.
QUICK = dict(TUNABLES, sync_health_ms=500, sync_again_ms=500)

# The states of the apply machine that other nodes take part in, by the test that has the daemon
# die at their edges: test_fanout.py, test_sync.py.
ASKING = ("peers", "trial")
PUSHING = ("push",)

# By ports of the bridge, so that a cut stops all there is between two: ARP, multicast and what
# goes to an address that moved.
CUTS = """\
table bridge lab {
    set cut { type ifname . ifname; }
    chain forward {
        type filter hook forward priority 0
        iifname . oifname @cut drop
    }
}
"""


def edges(states):
    """The crash points at both edges of these states."""
    return ["apply_%s_%s" % way for way in itertools.product(states, ("before", "after"))]


def head(one):
    """Id of the commit."""
    return one.api.get("/api/v1/status")["head"]["id"]


def drained(one, pool):
    """Names of its servers that are, as HAProxy says."""
    rows = [row.split() for row in one.admin_socket("show servers state " + pool).splitlines()]
    return {row[3] for row in rows if len(row) > 6 and row[1] == pool
            and int(row[6]) & FORCED_DRAIN}


def key_of(one):
    return one.api.get("/api/v1/cluster/key")


def join(new, old, **more):
    """The automation keys of the new one are those of the cluster from then on."""
    key = key_of(old)
    joined = new.api.expect(200, "POST", "/api/v1/cluster/join",
                            {"url": key["url"], "key": key["key"], "pin": key["pin"], **more})
    new.api.key = old.api.key
    return joined


def seen(one, other):
    """What one knows of the other."""
    return next(n for n in one.api.get("/api/v1/cluster")["nodes"] if n["name"] == other.name)


def lengthen(one, count):
    """A script has used it for long: so many revisions more, that change a key each."""
    one.stop()
    subprocess.run([os.path.join(BUILD, "tests", "long_history"),
                    os.path.join(one.state, "data"), str(count)], check=True,
                   user=UID, group=UID, stdout=subprocess.DEVNULL)
    one.start()
    one.wait_ready()


def reconciles(one):
    """Tasks that had files and HAProxy follow, the newest first."""
    return [t for t in one.api.get("/api/v1/tasks")["items"] if t["kind"] == "reconcile"]


def in_step(nodes, deadline=20):
    """One head, and each has heard so of each."""
    def is_so():
        told = [n for one in nodes for n in one.api.get("/api/v1/cluster")["nodes"]]
        return len({head(n) for n in nodes}) == 1 and all(
            n["answers"] and n["relation"] == "in_step" for n in told
            if n["name"] in {one.name for one in nodes})
    wait_for(is_so, "%s are in step" % ", ".join(n.name for n in nodes), deadline)


def announce(address):
    """Tells everybody on the link that the address is here now, as keepalived does."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
        link.bind((INSIDE, ETH_P_ARP))
        mac = link.getsockname()[4]
        own = mac + socket.inet_aton(address)
        link.send(b"\xff" * 6 + mac + struct.pack("!HHHBBH", ETH_P_ARP, 1, 0x0800, 6, 4, 1)
                  + own + bytes(6) + own[6:])


class Cluster:
    """count nodes, n1, n2 and so on, that know nothing of each other; self.nodes. options: of
    each node. The test has called node.private_network() before."""

    def __init__(self, count, node_type=Node, **options):
        assert 2 <= count <= MOST, count
        # As Ctrl-C does: with its default action nothing would be cleaned up.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        self.nodes = []
        self.places = []
        self.hub = Netns("hub", Netns.opened())
        atexit.register(self.close)
        run("ip", "link", "add", BRIDGE, "type", "bridge", "mcast_snooping", "0")
        run("ip", "address", "add", HUB + PREFIX, "dev", BRIDGE)
        run("ip", "link", "set", BRIDGE, "up")
        self.filter(CUTS)
        self.client = self.place("client", CLIENT)
        for n in range(1, count + 1):
            address = NODES % (10 + n)
            place = self.place("n%d" % n, address)
            self.nodes.append(node_type(place.name, ns=place, address=address, **options))

    def place(self, name, address):
        place = Netns(name)
        self.places.append(place)
        place.connect(name, INSIDE, address + PREFIX)
        run("ip", "link", "set", name, "master", BRIDGE)
        return place

    def filter(self, commands):
        with self.hub:
            run("nft", "--file", "-", text_in=commands)

    def on_all(self, work):
        """work(node) of all nodes at once; its results in their order."""
        with concurrent.futures.ThreadPoolExecutor(len(self.nodes)) as pool:
            return list(pool.map(work, self.nodes))

    def set_up(self):
        """Each node gets its administrator and its key."""
        self.on_all(lambda n: n.set_up())
        return self

    # -- links ---------------------------------------------------------------------------------

    def cut(self, a, b, one_way=False):
        """What a sends no longer reaches b, nor, unless one_way, the reverse: it is dropped, as
        by a broken cable. a, b: nodes, or the client."""
        self.filter("".join("add element bridge lab cut { %s . %s }\n" % (x.name, y.name)
                            for x, y in self.ways(a, b, one_way)))

    def join(self, a, b, one_way=False):
        """Undoes a cut, which there must be."""
        self.filter("".join("delete element bridge lab cut { %s . %s }\n" % (x.name, y.name)
                            for x, y in self.ways(a, b, one_way)))

    def join_all(self):
        self.filter("flush set bridge lab cut\n")

    @staticmethod
    def ways(a, b, one_way):
        return [(a, b)] if one_way else [(a, b), (b, a)]

    # -- addresses that move -------------------------------------------------------------------

    @staticmethod
    def hold(node, address):
        """The node has the address from now on, too."""
        with node.ns:
            run("ip", "address", "add", address + "/32", "dev", INSIDE)
            announce(address)

    @staticmethod
    def release(node, address):
        with node.ns:
            run("ip", "address", "delete", address + "/32", "dev", INSIDE)

    def holders(self, address):
        found = []
        for node in self.nodes:
            with node.ns:
                if run("ip", "-oneline", "address", "show", "to", address).stdout:
                    found.append(node)
        return found

    def vip(self, node, address):
        """The node has the address and no other has. node: None takes it away from all."""
        holders = self.holders(address)
        for other in holders:
            if other is not node:
                self.release(other, address)
        if node is not None and node not in holders:
            self.hold(node, address)

    # -- the end -------------------------------------------------------------------------------

    def close(self):
        """Ends the nodes in order and takes everything away, also when one does not end well."""
        atexit.unregister(self.close)
        with contextlib.ExitStack() as stack:
            stack.callback(self.take_away)
            for node in self.nodes:
                stack.callback(node.close)
        self.nodes = []

    def take_away(self):
        with self.hub:
            for place in self.places:
                # Not left to the end of the namespace, which the kernel takes its time for.
                run("ip", "link", "delete", place.name, check=False)
                place.delete()
            run("ip", "link", "delete", BRIDGE, check=False)
            run("nft", "delete", "table", "bridge", "lab", check=False)
        self.hub.delete()
        self.places = []

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()
