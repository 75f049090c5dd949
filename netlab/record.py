#!/usr/bin/env python3
"""Makes a record of rows of JSON, one a line, from standard input: where, when and of what they were measured.

record.py WHAT LOAD [NAME=JSON...]    LOAD is the load average before; each NAME is a further field
"""
import datetime
import json
import os
import platform
import subprocess
import sys

what, load, *fields = sys.argv[1:]
cpu = {k.strip(): v.strip() for k, _, v in (line.partition(":") for line in open("/proc/cpuinfo"))}
record = {
    "what": what,
    "commit": subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip(),
    "date": datetime.date.today().isoformat(),
    "processor": "%s, family %s, model %s" % (cpu.get("model name"), cpu.get("cpu family"), cpu.get("model")),
    "processors": os.cpu_count(),
    "kernel": platform.release(),
    "load_before": float(load),
}
record.update((name, json.loads(value)) for name, _, value in (field.partition("=") for field in fields))
record["rows"] = [json.loads(line) for line in sys.stdin]
print(json.dumps(record, indent=2))
