#!/usr/bin/env python3
"""The tests that docs/results/store-reliability.md names for reported faults exist."""
import pathlib
import re
import sys

PAGE = "docs/results/store-reliability.md"


def main(root):
    text = "\n".join(re.sub(r'"\s*\n\s*"', "", path.read_text())
                     for path in (root / "tests").rglob("*_test.cpp"))
    names = [name for line in (root / PAGE).read_text().splitlines() if line.count("|") == 4
             for name in re.findall(r'"([^"]{20,})"', line.split("|")[3])]
    problems = [f"{PAGE} names a test that is not there: {name}" for name in names
                if f'"{name}"' not in text]
    print("\n".join(problems) or f"{len(names)} tests, all there")
    return 1 if problems or not names else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
