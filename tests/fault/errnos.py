#!/usr/bin/env python3
"""Writes errnos.json: for each system call the errors that section ERRORS of its manual page names.

  errnos.py MAN2_FOLDER > errnos.json     (MAN2_FOLDER: usr/share/man/man2 of Debian's manpages-dev)
"""
import errno
import gzip
import json
import pathlib
import re
import sys

# As the kernel has them, where the C library (and so the page) has another name, or the page of
# another call describes it.
ALIASES = {"newfstatat": "stat", "pread64": "pread", "pwrite64": "pwrite", "prlimit64": "getrlimit",
           "rt_sigaction": "sigaction", "rt_sigprocmask": "sigprocmask", "clone3": "clone",
           "rt_sigtimedwait": "sigtimedwait", "fadvise64": "posix_fadvise", "getdents64": "getdents",
           "renameat2": "rename", "ppoll": "poll", "exit_group": "exit_group", "access": "access"}
SAME_AS = {"EWOULDBLOCK": "EAGAIN", "ENOTSUP": "EOPNOTSUPP", "EDEADLOCK": "EDEADLK"}


def page(folder, name):
    path = folder / f"{name}.2.gz"
    if not path.exists():
        return ""
    text = gzip.decompress(path.read_bytes()).decode(errors="replace")
    other = re.match(r"\.so man2/(\w+)\.2", text)
    return page(folder, other[1]) if other else text


def errors(text):
    section = re.search(r"^\.SH ERRORS\n(.*?)(?=^\.SH )", text, re.S | re.M)
    if not section:
        return []
    found = []
    # An entry begins with a line of its own: ".B EAGAIN", ".BR EAGAIN " or ".BR EWOULDBLOCK".
    for line in re.findall(r"^\.BR? +(E[A-Z0-9]+\b.*)$", section[1], re.M):
        for name in re.findall(r"\bE[A-Z0-9]{2,}\b", line):
            name = SAME_AS.get(name, name)
            if hasattr(errno, name) and name not in found:
                found.append(name)
    return found


def main():
    folder = pathlib.Path(sys.argv[1])
    names = {path.name[:-len(".2.gz")] for path in folder.glob("*.2.gz")} | set(ALIASES)
    table = {}
    for name in sorted(names):
        found = errors(page(folder, ALIASES.get(name, name)))
        if found:
            table[name] = found
    print("{")
    print(",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in table.items()))
    print("}")


main()
