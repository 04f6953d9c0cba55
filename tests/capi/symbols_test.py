#!/usr/bin/env python3
"""libcubist.so exports exactly the names of a list; prints what is too much and what is missing.

symbols_test.py LIBRARY LIST
"""
import subprocess
import sys


def main() -> int:
    library, expected_file = sys.argv[1:]
    output = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                            capture_output=True, text=True).stdout
    found = sorted(line.split()[-1] for line in output.splitlines())
    with open(expected_file, encoding="utf-8") as file:
        expected = sorted(file.read().split())
    for name in sorted(set(found) - set(expected)):
        print(f"exported, but not in {expected_file}: {name}")
    for name in sorted(set(expected) - set(found)):
        print(f"in {expected_file}, but not exported: {name}")
    return 0 if found == expected else 1


if __name__ == "__main__":
    sys.exit(main())
