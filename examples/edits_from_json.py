#!/usr/bin/env python3
"""Makes edits for cupatch apply with a program of one's own.

Reads what `cupatch dis --json` prints and writes a report in which every second
global load of each kernel is evicted first:

    cupatch dis --json kernel.cubin | python3 edits_from_json.py > edits.json
    cupatch apply edits.json kernel.cubin -o tuned.cubin

The format is described in docs/report.schema.json. cupatch checks every old word, so
edits for another build of the kernel are refused.
"""

import json
import sys

EVICT_SHIFT = 84 - 64  # bits 84-86 of the word, in its upper half
EVICT_FIRST = 0
EVICT_NONE = 1


def edits(kernel):
    loads = [i for i in kernel["instructions"] if i.get("opcode") == "LDG"]
    for inst in loads[::2]:
        lo, hi = (int(half, 16) for half in inst["word"])
        if hi >> EVICT_SHIFT & 7 != EVICT_NONE:
            continue
        new_hi = hi & ~(7 << EVICT_SHIFT) | EVICT_FIRST << EVICT_SHIFT
        edit = {
            "kernel": kernel["kernel"],
            "pc": inst["pc"],
            "old": inst["word"],
            "new": [hex(lo), hex(new_hi)],
            "rule": "every second load",
        }
        if "entry" in kernel:
            edit["entry"] = str(kernel["entry"])
        yield edit


def main():
    files = {}
    for line in sys.stdin:
        kernel = json.loads(line)
        files.setdefault(kernel["file"], []).extend(edits(kernel))
    report = {
        "format": "cupatch-report-1",
        "tool": "edits_from_json.py",
        "files": [{"file": name, "edits": e} for name, e in files.items()],
    }
    json.dump(report, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
