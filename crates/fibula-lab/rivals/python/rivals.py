"""Lookup tables of Python packages, served over the protocol of rival/external/mod.rs.

Each class is one rival. It gets the routes as (address, length, next hop), with addresses as bytes in network order and
each prefix before those within it. Its methods:

    prepare(routes)   what its own functions take instead, made before the clock of the build runs
    build(prepared)   builds the table
    keys(addresses)   the keys in its own form
    answer(keys, n)   every answer, 0 for none; n keys a call where it has such a call
    run(keys, n)      the same lookups and nothing else: what is timed
    memory()          bytes by its own count; None where it has none, and the process's growth is taken

That an interpreted loop waits for the answer before it asks for the next key needs no doing; xdp-lpm-trie does not loop here.
"""

import ctypes
import functools
import gc
import importlib
import ipaddress
import mmap
import os
import platform
import socket
import struct
import sys
import tempfile
import time


def text(address):
    return socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)


class Pytricia:
    """pytricia: frozen once it is built, as its authors advise. Keys are bytes, which it need not parse."""

    def __init__(self, width):
        module = importlib.import_module("pytricia")
        self.tree = module.PyTricia(width, socket.AF_INET if width == 32 else socket.AF_INET6)

    def prepare(self, routes):
        return [(f"{text(address)}/{length}", next_hop) for address, length, next_hop in routes]

    def build(self, routes):
        insert = self.tree.insert
        for prefix, next_hop in routes:
            insert(prefix, next_hop)
        self.tree.freeze()

    def keys(self, addresses):
        return addresses

    def answer(self, keys, _):
        return [self.tree.get(key) or 0 for key in keys]

    def run(self, keys, _):
        get = self.tree.get
        for key in keys:
            get(key)

    def memory(self):
        return None


class PyRadix:
    """py-radix: the next hop is in the node's dictionary, where its users put it. Finding the node is timed."""

    def __init__(self, width):
        self.tree = importlib.import_module("radix").Radix()

    def prepare(self, routes):
        return routes

    def build(self, routes):
        add = self.tree.add
        for address, length, next_hop in routes:
            add(packed=address, masklen=length).data["next_hop"] = next_hop

    def keys(self, addresses):
        return addresses

    def answer(self, keys, _):
        nodes = (self.tree.search_best(packed=key) for key in keys)
        return [node.data["next_hop"] if node else 0 for node in nodes]

    def run(self, keys, _):
        search = self.tree.search_best
        for key in keys:
            search(packed=key)

    def memory(self):
        return None


class Pyasn:
    """pyasn: reads its own text format, and takes addresses as text. It refuses a default route: it gets the two halves instead."""

    def __init__(self, width):
        self.module = importlib.import_module("pyasn")

    def prepare(self, routes):
        lines = {f"{text(address)}/{length}": next_hop for address, length, next_hop in routes}
        for zero, half in (("0.0.0.0", "128.0.0.0"), ("::", "8000::")):
            default = lines.pop(f"{zero}/0", None)
            if default is not None:
                lines.setdefault(f"{zero}/1", default)
                lines.setdefault(f"{half}/1", default)
        return "".join(f"{prefix}\t{next_hop}\n" for prefix, next_hop in lines.items())

    def build(self, lines):
        self.table = self.module.pyasn(None, ipasn_string=lines)

    def keys(self, addresses):
        return [text(address) for address in addresses]

    def answer(self, keys, _):
        return [self.table.lookup(key)[0] or 0 for key in keys]

    def run(self, keys, _):
        lookup = self.table.lookup
        for key in keys:
            lookup(key)

    def memory(self):
        return None


class MaxMindDb:
    """maxminddb: a MaxMind DB file, written by mmdb_writer and mapped, whose records are the next hops. Keys are address objects."""

    def __init__(self, width):
        self.module = importlib.import_module("maxminddb")
        self.writer = importlib.import_module("mmdb_writer")
        self.netaddr = importlib.import_module("netaddr")
        self.address = ipaddress.IPv4Address if width == 32 else ipaddress.IPv6Address
        self.version = 4 if width == 32 else 6

    def prepare(self, routes):
        # A file has no records for routes within others that end later: it gets the ranges between changes as prefixes.
        width = 32 if self.version == 4 else 128
        found = boundaries(routes, width)
        ends = [start - 1 for start, _ in found[1:]] + [(1 << width) - 1]
        of_version = lambda at: self.netaddr.IPAddress(at, self.version)
        return [
            (self.netaddr.iprange_to_cidrs(of_version(start), of_version(end)), next_hop)
            for (start, next_hop), end in zip(found, ends)
            if next_hop
        ]

    def build(self, ranges):
        writer = self.writer.MMDBWriter(self.version, int_type="u32")
        for prefixes, next_hop in ranges:
            writer.insert_network(self.netaddr.IPSet(prefixes, flags=0), next_hop)
        with tempfile.NamedTemporaryFile(suffix=".mmdb") as file:
            writer.to_db_file(file.name)
            self.bytes = os.stat(file.name).st_size
            self.reader = self.module.open_database(file.name, self.module.MODE_MMAP_EXT)

    def keys(self, addresses):
        return [self.address(address) for address in addresses]

    def answer(self, keys, _):
        return [self.reader.get(key) or 0 for key in keys]

    def run(self, keys, _):
        get = self.reader.get
        for key in keys:
            get(key)

    def memory(self):
        return self.bytes


class Bpf:
    """The system call bpf, as linux/bpf.h has it."""

    MAP_CREATE, MAP_UPDATE_BATCH, PROG_LOAD, PROG_TEST_RUN = 0, 26, 5, 10
    ARRAY, LPM_TRIE, XDP = 2, 11, 6
    NO_PREALLOC, MMAPABLE = 1, 1 << 10

    def __init__(self):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.number = {"x86_64": 321, "aarch64": 280}[platform.machine()]

    def call(self, command, *fields):
        """Fields are (format, value), one after the other; bytes are given by their address."""
        kept, form, values = [], "=", []
        for kind, value in fields:
            if kind == "*":
                kept.append(ctypes.create_string_buffer(value, len(value)))
                kind, value = "Q", ctypes.addressof(kept[-1])
            form, values = form + kind, values + [value]
        attributes = ctypes.create_string_buffer(struct.pack(form, *values).ljust(144, b"\0"), 144)
        result = self.libc.syscall(self.number, command, attributes, 144)
        if result < 0:
            raise OSError(ctypes.get_errno(), f"bpf: {os.strerror(ctypes.get_errno())}")
        return result

    def map(self, kind, key, value, entries, flags):
        return self.call(self.MAP_CREATE, *(("I", field) for field in (kind, key, value, entries, flags)))

    def update(self, fd, keys, values, count):
        """Adds entries from two strings of bytes."""
        key, value = len(keys) // count, len(values) // count
        for at in range(0, count, 1 << 16):
            part = min(1 << 16, count - at)
            keys_of = keys[at * key : (at + part) * key]
            values_of = values[at * value : (at + part) * value]
            self.call(
                self.MAP_UPDATE_BATCH,
                *(("Q", 0), ("Q", 0), ("*", keys_of), ("*", values_of), ("I", part), ("I", fd), ("Q", 0), ("Q", 0)),
            )

    def load(self, code):
        return self.call(
            self.PROG_LOAD, ("I", self.XDP), ("I", len(code) // 8), ("*", code), ("*", b"GPL\0")
        )


class XdpLpmTrie:
    """The kernel's BPF_MAP_TYPE_LPM_TRIE, looked up by an XDP program: it loops over 256 keys of an array, and
    BPF_PROG_TEST_RUN repeats it. One call of the system is for at least 2^20 keys, or for all."""

    CHUNK = 256

    def __init__(self, width):
        self.bpf, self.octets = Bpf(), width // 8

    def prepare(self, routes):
        keys = b"".join(struct.pack("=I", length) + address for address, length, _ in routes)
        return keys, b"".join(struct.pack("=I", next_hop) for _, _, next_hop in routes), len(routes)

    def build(self, prepared):
        keys, values, count = prepared
        self.trie = self.bpf.map(Bpf.LPM_TRIE, 4 + self.octets, 4, max(count, 1), Bpf.NO_PREALLOC)
        if count:
            self.bpf.update(self.trie, keys, values, count)

    def array(self, octets):
        fd = self.bpf.map(Bpf.ARRAY, 4, octets, 1, Bpf.MMAPABLE)
        return fd, mmap.mmap(fd, octets, mmap.MAP_SHARED)

    def keys(self, addresses):
        # The places of keys are a power of two, which the program's bounds are proved by.
        self.places = max(self.CHUNK, 1 << (len(addresses) - 1).bit_length())
        length, stride = struct.pack("=I", 8 * self.octets), 4 + self.octets
        (keys, room), (answers, self.answers), (place, self.place) = (
            self.array(octets) for octets in (self.places * stride, self.places * 4, 4)
        )
        data = b"".join(length + address for address in addresses)
        room[: len(data)] = data
        maps = keys, answers, place
        self.programs = {dependent: self.bpf.load(self.code(maps, dependent)) for dependent in (False, True)}
        return range(len(addresses))

    def code(self, maps, dependent):
        def op(code, to=0, source=0, offset=0, value=0):
            return struct.pack("<BBhi", code, source << 4 | to, offset, value)

        def wide(to, kind, fd):
            return op(0x18, to, kind, 0, fd) + op(0)

        (keys, answers, place), mask, stride = maps, self.places - 1, 4 + self.octets
        loop = [
            op(0xBF, 9, 7), op(0x0F, 9, 8), op(0x57, 9, value=mask),  # r9 = (first + number) & mask
            op(0xBF, 1, 9), op(0x27, 1, value=stride),
            wide(2, 2, keys), op(0x0F, 2, 1),  # r2 = the key
            wide(1, 1, self.trie), op(0x85, value=1),  # r0 = bpf_map_lookup_elem(trie, r2)
            op(0xB7, 1, value=0), op(0x15, 0, 0, 1, 0), op(0x61, 1, 0),  # r1 = r0 ? *r0 : 0
            op(0x67, 9, value=2), wide(3, 2, answers), op(0x0F, 3, 9), op(0x63, 3, 1),
            # The place of the next key depends on the answer before it.
            *([op(0x57, 1, value=0), op(0x0F, 7, 1)] if dependent else []),
            op(0x07, 8, value=1),
        ]  # fmt: skip
        length = sum(map(len, loop)) // 8
        return b"".join([
            wide(6, 2, place), op(0x61, 7, 6), op(0xB7, 8, value=0),
            *loop, op(0xA5, 8, 0, -length - 1, self.CHUNK),  # while number < 256
            op(0x07, 7, value=self.CHUNK), op(0x63, 6, 7), op(0xB7, 0, value=2), op(0x95),
        ])  # fmt: skip

    def part(self, keys, start, end):
        return keys[start:end]

    def run(self, keys, _, dependent=False):
        self.place[:4] = struct.pack("=I", keys.start)
        chunks = -(-len(keys) // self.CHUNK)
        for at in range(0, chunks, 1 << 12):
            repeat = min(1 << 12, chunks - at)
            # prog_fd, retval, sizes of data in and out, data in, data out, repeat, duration
            self.bpf.call(
                Bpf.PROG_TEST_RUN,
                *(("I", self.programs[dependent]), ("I", 0), ("I", 14), ("I", 0), ("*", bytes(14)), ("Q", 0)),
                *(("I", repeat), ("I", 0)),
            )

    def answer(self, keys, batch):
        self.run(keys, batch)
        return memoryview(self.answers).cast("I")[: len(keys)].tolist()

    def memory(self):
        with open(f"/proc/self/fdinfo/{self.trie}", encoding="ascii") as info:
            return next(int(line.split()[1]) for line in info if line.startswith("memlock:"))


class Arrays:
    """What both structures of arrays have in common: a call takes a slice of the keys."""

    def answer(self, keys, batch):
        numpy = self.numpy
        parts = [self.lookup(self.part(keys, at, at + batch)) for at in range(0, self.count(keys), batch)]
        return numpy.concatenate(parts) if parts else numpy.zeros(0, "<u4")

    def run(self, keys, batch):
        lookup, part = self.lookup, self.part
        for at in range(0, self.count(keys), batch):
            lookup(part(keys, at, at + batch))

    def part(self, keys, start, end):
        return keys[start:end]

    def count(self, keys):
        return len(keys)


def boundaries(routes, width):
    """Where the answer changes, and to what: pairs in order, the first at 0, none like the one before it."""
    found, open_routes = [(0, 0)], []

    def change(at, next_hop):
        if found[-1][0] == at:
            found.pop()
        if not found or found[-1][1] != next_hop:
            found.append((at, next_hop))

    def close(before):
        while open_routes and (before is None or open_routes[-1][0] <= before):
            end = open_routes.pop()[0]
            if end < 1 << width:
                change(end, open_routes[-1][1] if open_routes else 0)

    for address, length, next_hop in routes:
        first = int.from_bytes(address, "big")
        close(first)
        change(first, next_hop)
        open_routes.append((first + (1 << (width - length)), next_hop))
    close(None)
    return found


class NumpySearchsorted(Arrays):
    """A binary search among the sorted addresses at which the answer changes.

    NumPy has no integers of 128 bits. IPv6 addresses are searched for by their upper half. Few upper halves have
    changes within them; keys with such a half are searched for once more, as strings of 16 bytes among those changes.
    """

    def __init__(self, width):
        self.numpy = importlib.import_module("numpy")
        self.width = width
        self.lookup = self.lookup4 if width == 32 else self.lookup6

    def prepare(self, routes):
        return routes

    def build(self, routes):
        numpy = self.numpy
        found = boundaries(routes, self.width)
        if self.width == 32:
            self.starts = numpy.array([start for start, _ in found], "=u4")
            self.next_hops = numpy.array([0] + [next_hop for _, next_hop in found], "<u4")
            return
        half = (1 << 64) - 1
        # By upper half: the answer after all changes within it, and whether there are any.
        above, inner = {}, {}
        for start, next_hop in found:
            above[start >> 64] = next_hop
            if start & half:
                inner[start >> 64] = True
        self.starts = numpy.array(list(above), "=u8")
        self.next_hops = numpy.array([0] + list(above.values()), "<u4")
        self.inner = numpy.array([False] + [upper in inner for upper in above])
        # What an upper half begins with, where a change within it is its first, is what the one before it ends with.
        before, within, upper = 0, [], None
        for start, next_hop in found:
            if start >> 64 in inner:
                if start >> 64 != upper and start & half:
                    within.append(((start >> 64) << 64, before))
                upper = start >> 64
                within.append((start, next_hop))
            before = next_hop
        self.fine = numpy.array([start.to_bytes(16, "big") for start, _ in within], "S16")
        self.fine_next_hops = numpy.array([0] + [next_hop for _, next_hop in within], "<u4")

    def keys(self, addresses):
        numpy = self.numpy
        joined = b"".join(addresses)
        if self.width == 32:
            return numpy.frombuffer(joined, ">u4").astype("=u4")
        return numpy.frombuffer(joined, ">u8")[::2].astype("=u8"), numpy.frombuffer(joined, "S16")

    def part(self, keys, start, end):
        return keys[start:end] if self.width == 32 else (keys[0][start:end], keys[1][start:end])

    def count(self, keys):
        return len(keys if self.width == 32 else keys[0])

    def lookup4(self, keys):
        return self.next_hops[self.starts.searchsorted(keys, "right")]

    def lookup6(self, keys):
        upper, whole = keys
        at = self.starts.searchsorted(upper, "right")
        next_hops = self.next_hops[at]
        fine = self.inner[at]
        if fine.any():
            fine &= self.starts[at - 1] == upper
            next_hops[fine] = self.fine_next_hops[self.fine.searchsorted(whole[fine], "right")]
        return next_hops

    def memory(self):
        arrays = [self.starts, self.next_hops]
        if self.width == 128:
            arrays += [self.inner, self.fine, self.fine_next_hops]
        return sum(array.nbytes for array in arrays)


class NumpyDir248(Arrays):
    """DIR-24-8: an entry for each /24, and where something within differs, 256 more. IPv4 only."""

    def __init__(self, width):
        if width != 32:
            raise ValueError("DIR-24-8 is for IPv4")
        self.numpy = importlib.import_module("numpy")

    def prepare(self, routes):
        return routes

    def build(self, routes):
        numpy = self.numpy
        groups = len({address[:3] for address, length, _ in routes if length > 24})
        largest = max((next_hop for _, _, next_hop in routes), default=0)
        # The highest bit tells next hops from groups.
        kind = "=u2" if max(groups, largest + 1) <= 1 << 15 else "=u4"
        self.flag = 1 << (15 if kind == "=u2" else 31)
        if max(groups, largest + 1) > self.flag:
            raise ValueError(f"entries of 31 bits cannot hold next hop {largest}")
        first, fine, used = numpy.zeros(1 << 24, kind), numpy.zeros((groups, 256), kind), 0
        for address, length, next_hop in routes:
            at = int.from_bytes(address, "big")
            if length <= 24:
                first[at >> 8 : (at >> 8) + (1 << (24 - length))] = next_hop
                continue
            entry = int(first[at >> 8])
            if not entry & self.flag:
                fine[used] = entry
                entry = first[at >> 8] = self.flag | used
                used += 1
            fine[entry & ~self.flag, at & 255 : (at & 255) + (1 << (32 - length))] = next_hop
        self.first, self.fine = first, fine.reshape(-1)

    def keys(self, addresses):
        # The integers that NumPy takes as places.
        return self.numpy.frombuffer(b"".join(addresses), ">u4").astype(self.numpy.intp)

    def lookup(self, keys):
        found = self.first[keys >> 8]
        fine = (found >= self.flag).nonzero()[0]
        if len(fine):
            group = (found[fine] & (self.flag - 1)).astype(self.numpy.intp)
            found[fine] = self.fine[group << 8 | keys[fine] & 255]
        return found

    def memory(self):
        return self.first.nbytes + self.fine.nbytes


RIVALS = {
    "pytricia": Pytricia,
    "py-radix": PyRadix,
    "pyasn": Pyasn,
    "maxminddb": MaxMindDb,
    "xdp-lpm-trie": XdpLpmTrie,
    "numpy-searchsorted": NumpySearchsorted,
    "numpy-dir-24-8": NumpyDir248,
}


def resident():
    """Bytes of this process that are in memory, 0 where the system does not tell.

    What was freed before is given back first: a table in its place would seem to take nothing.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        pass  # Another C library than glibc.
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Server:
    def __init__(self):
        # Nothing else may get into the answers.
        self.output = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self.input = sys.stdin.buffer
        self.width = self.rival = self.keys = None

    def exactly(self, count):
        data = self.input.read(count)
        if len(data) != count:
            raise EOFError("the input ended within a request")
        return data

    def table(self, name, family, count):
        self.width = 32 if family == "ipv4" else 128
        octets, count = self.width // 8, int(count)
        data, size = self.exactly(count * (octets + 5)), octets + 5
        try:
            self.rival = RIVALS[name](self.width)
            routes = self.rival.prepare(
                [
                    (
                        data[at : at + octets],
                        data[at + octets],
                        int.from_bytes(data[at + octets + 1 : at + size], "little"),
                    )
                    for at in range(0, count * size, size)
                ]
            )
            before = resident()
            start = time.perf_counter_ns()
            self.rival.build(routes)
            built = time.perf_counter_ns() - start
        except (ValueError, OverflowError, RuntimeError, MemoryError, ImportError, OSError) as error:
            return "refused " + " ".join(str(error).split())
        grown = resident() - before
        own = self.rival.memory()
        # Objects that live as long as the program need not be looked through again and again.
        gc.collect()
        gc.freeze()
        return f"built {built} {max(0, grown if own is None else own)} {max(0, grown if own is None else own)}"

    def load(self, count):
        octets = self.width // 8
        data = self.exactly(int(count) * octets)
        self.keys = self.rival.keys([data[at : at + octets] for at in range(0, len(data), octets)])
        return "ready"

    def answer(self, _, batch):
        answers = self.rival.answer(self.keys, int(batch))
        if isinstance(answers, list):
            data = b"".join(answer.to_bytes(4, "little") for answer in answers)
        else:
            data = answers.astype("<u4").tobytes()
        return f"answers {len(data) // 4}", data

    def time(self, shape, batch, first, count, passes):
        batch, first, count, passes = map(int, (batch, first, count, passes))
        part = getattr(self.rival, "part", lambda keys, start, end: keys[start:end])
        keys, run = part(self.keys, first, first + count), self.rival.run
        if shape == "dependent" and isinstance(self.rival, XdpLpmTrie):
            run = functools.partial(run, dependent=True)
        wall, thread = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(passes):
            run(keys, batch)
        thread = time.thread_time_ns() - thread
        return f"time {time.perf_counter_ns() - wall} {thread}"

    def serve(self):
        requests = {"table": self.table, "keys": self.load, "answer": self.answer, "time": self.time}
        for line in iter(self.input.readline, b""):
            word, *rest = line.decode("ascii").split()
            answer = requests[word](*rest)
            answer, data = answer if isinstance(answer, tuple) else (answer, b"")
            self.output.write(answer.encode("ascii", "replace") + b"\n" + data)
            self.output.flush()


if __name__ == "__main__":
    Server().serve()
