"""What several tests use."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any


def run_blocks(text: str) -> int:
    """Run the Python of a page, block after block. Return how many outputs the page has; each is what its block printed."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    compared = 0
    for at, (language, code) in enumerate(blocks):
        if language != "python":
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        if at + 1 < len(blocks) and blocks[at + 1][0] == "text":
            assert out.getvalue() == blocks[at + 1][1]
            compared += 1
    return compared


def arrow_type(pa: Any, kind: str) -> Any:
    """Return the type of Arrow of a kind of column; None where it has none."""
    return {
        "uint32": pa.uint32(),
        "int32": pa.int32(),
        "uint64": pa.uint64(),
        "int64": pa.int64(),
        "fixed_4": pa.binary(4),
        "fixed_16": pa.binary(16),
        "binary": pa.binary(),
        "large_binary": pa.large_binary(),
        "binary_view": pa.binary_view(),
        "string": pa.string(),
        "large_string": pa.large_string(),
        "string_view": pa.string_view(),
        "null": pa.null(),
    }.get(kind)
