"""Hostile logs, and the memory that the command takes for each."""
import os

MB = 1 << 20
LIMIT, THREADS = 16, 2
open("all.txt", "w").write("0.0.0.0/0 x\n")
open("long.txt", "w").write("0.0.0.0/0 " + "y" * 60_000 + "\n")
ip = b'{"ip":"203.0.113.1","a":"'
fields = b'":1,"'.join(b"f%d" % number for number in range(20_000))
LOGS = {
    "lines of almost 4 MiB": ("json-line", lambda: (ip + b"x" * (4 * MB - 30) + b'"}\n') * 8),
    "a line of more": ("json-line", lambda: ip + b"x" * (5 * MB) + b'"}\n'),
    "deep objects": ("json", lambda: b'{"a":' * 600_000 + b"1" + b"}" * 600_000),
    "lists that only begin": ("json", lambda: b"[" * (12 * MB)),
    "objects that only begin": ("json", lambda: b'{"a":' * (2 * MB)),
    "a long name of many fields": ("json-line", lambda: (b'{"' + b"n" * 60_000 + b'":{"' + fields + b'":1},"ip":"203.0.113.1"}\n') * 9),
    "quotes that only begin": ("csv", lambda: b"ip,x\n" + b'203.0.113.1,"a\n' * 500_000),
    "long lines with one quote": ("csv", lambda: b"ip,x\n" + (b'203.0.113.1,"' + b"a" * 4_000 + b"\n") * 2_000),
    "quotes that never end": ("csv", lambda: b'ip,x\n203.0.113.1,"' + b'""' * (4 * MB)),
    "millions of columns": ("csv", lambda: b"ip" + b"," * (2 * MB) + b"\n203.0.113.1" + b"," * (2 * MB) + b"\n"),
    "no end of a line": ("tsv", lambda: b"ip\tx\n" + b"1" * (12 * MB)),
    "short rows and a long label": ("csv", lambda: b"ip\n" + b"203.0.113.1\n" * 5_000),
}
for name, (form, log) in LOGS.items():
    # A log that this process still holds would count for the command, which begins as a copy of it.
    open("log", "wb").write(log())
    table = "long.txt" if "label" in name else "all.txt"
    arguments = ["enrich", "-q", "--memory-limit", f"{LIMIT}M", "--threads", str(THREADS), "-t", table, "-c", "ip", "--input-format", form, "log"]
    child = os.fork()
    if child == 0:
        nowhere = os.open("/dev/null", os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os.execv(os.environ["FIBULA"], ["fibula", *arguments])
    _, status, usage = os.wait4(child, 0)
    peak = usage.ru_maxrss // 1024
    within = peak <= LIMIT + 16 * THREADS + 16
    print(f"{name}: rc {os.waitstatus_to_exitcode(status)}, {'within bounds' if within else f'{peak} MiB'}")
