#!/usr/bin/env python3
"""Appends what DuckDB reads of a file before it loads it as an extension: footer.py FILE PLATFORM VERSION.

A section of WebAssembly by the name `duckdb_signature` with eight fields of 32 bytes, the first one last, and room for a signature, which is empty. As DuckDB's
own scripts/append_extension_metadata.py writes it (1.3.2).
"""

from __future__ import annotations

import sys

# Version 1.2.0 of the stable interface in C, which DuckDB 1.3.2 and later have.
INTERFACE = "v1.2.0"


def footer(platform: str, version: str) -> bytes:
    """Return the section."""
    fields = ["4", platform, INTERFACE, version, "C_STRUCT", "", "", ""]
    name = b"duckdb_signature"
    start = bytes([0, 0x93, 0x04, len(name)]) + name + bytes([0x80, 0x04])
    return start + b"".join(field.encode().ljust(32, b"\0") for field in reversed(fields)) + bytes(256)


if __name__ == "__main__":
    _, path, platform, version = sys.argv
    with open(path, "ab") as file:
        file.write(footer(platform, version))
