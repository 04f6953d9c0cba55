#!/usr/bin/env python3
"""Fetch, repair and gc with each of their system calls failing once, with each errno its manual page names.

  syscall_matrix.py TOOL SOURCE_DIR [OUT.csv [OPERATION[:CALL]...]]

The calls are those of an strace of each command, from main() on (what the loader does before is not
the program's). Calls of one name on one kind of thing (an entry, the lock file, a socket) are one
call here: its first one fails. Errors come from errnos.json. A cell is a command, a call, an errno:

  done         exit 0, and all is as after a run without fault
  named error  an exit code of the documented ones, and a message
  taken for gone    gc was told that a thing is not there, as when another gc has just removed it
  exit code alone   the same, where writing the message is what failed
  aborted      ended by the C library, which does not survive that error
  not reached  strace counts per thread: the loader's own call of that number failed before main()

After every cell no entry may have wrong bytes, and the command run again must end well, with the
store complete and no temporary file left. Prints the number of cells; ends with 1 if one breaks that.
"""
import collections
import csv
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from made_release import Release, StoreView
from nginx import Nginx

OPERATIONS = ("fetch", "repair", "gc")
KERNELS = 3
PATIENCE = ("--tries", "2", "--stall-timeout", "1", "--connect-timeout", "2")
TIME_LIMIT = 20
GONE = ("ENOENT", "ENOTDIR")
CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$")


def kind_of_thing(arguments, folder):
    """What a call is about, without what differs from run to run."""
    named = re.findall(r'"((?:[^"\\]|\\.)*)"|\d<([^>]*)>', arguments)
    texts = [quoted or descriptor for quoted, descriptor in named]
    # The descriptor says which file; a path relative to the working folder says it better.
    text = next((t for t in texts if t.startswith("/") and t != os.getcwd()), texts[0] if texts else "")
    if re.match(r"\d+<", arguments):
        text = texts[0]
    text = text.replace(folder, "")
    for pattern, name in ((r"^(/usr)?/lib/.*|.*\.so[.\d]*$", "a library"), (r"[0-9a-f]{64}", "DIGEST"),
                          (r"/sha256/[0-9a-f]{2}\b", "/sha256/XX"), (r"\d+-[0-9a-f]{24}\.part", "FILE.part"),
                          (r"^(TCP|UDP|UNIX|NETLINK|socket).*", "a socket"), (r"(pipe|anon_inode|eventfd).*", r"\1"),
                          (r"^/(proc|sys|etc|usr|root|home)/.*", r"below /\1"), (r"\d{3,}", "N")):
        text = re.sub(pattern, name, text)
    return "data" if "\\" in text or len(text) > 60 else text


class Matrix:
    def __init__(self, tool, source_dir):
        self.tool = tool
        self.folder = tempfile.mkdtemp(prefix="cubist-calls-")
        self.release = Release(source_dir, self.folder, KERNELS, sizes=(40_000, 60_000))
        self.nginx = Nginx(self.folder + "/nginx", self.release.tree)
        self.manifest = self.release.write_manifest("m.json", {"type": "http", "location": self.nginx.url})
        self.root = self.folder + "/store"
        self.store = StoreView(self.root, self.release)
        self.template = self.folder + "/template"
        self.errnos = json.loads(pathlib.Path(__file__).with_name("errnos.json").read_text())
        done = self.run_plain("fetch")
        assert done.returncode == 0, done.stderr
        shutil.copytree(self.root, self.template)
        self.victim = sorted(self.release.bytes)[1]
        self.problems = []

    def command(self, operation):
        keep = sum(map(len, self.release.bytes.values())) // 2
        return [str(part) for part in {
            "fetch": (self.tool, "fetch", "-m", self.manifest, "--store", self.root, "--all", *PATIENCE),
            "repair": (self.tool, "verify", "-m", self.manifest, "--store", self.root, "--repair", *PATIENCE),
            "gc": (self.tool, "gc", "--store", self.root, "--max-size", keep),
        }[operation]]

    def run_plain(self, operation):
        return subprocess.run(self.command(operation), capture_output=True, text=True, check=False)

    def prepare(self, operation):
        """Returns the names and bytes of entries that are wrong from the start."""
        shutil.rmtree(self.root, ignore_errors=True)
        if operation == "fetch":
            return {}
        shutil.copytree(self.template, self.root)
        # A dead writer's file, so that sweeping is a part of what is looked at.
        (pathlib.Path(self.root) / "tmp" / ("1-" + "0" * 24 + ".part")).write_bytes(b"left")
        if operation == "gc":
            return {}
        path = self.store.path(self.victim)
        broken = bytearray(self.release.bytes[self.victim])
        broken[1000] ^= 1
        path.chmod(0o644)
        path.write_bytes(bytes(broken))
        return {path.name: bytes(broken)}

    def calls(self, operation):
        """(call, which one of its thread, kind of thing), each kind once, in the order of the trace."""
        self.prepare(operation)
        trace = self.folder + "/trace"
        subprocess.run(["strace", "-f", "-y", "-qq", "-s", "200", "-o", trace, *self.command(operation)],
                       capture_output=True, check=False)
        lines = [match.groups() for line in open(trace, errors="replace") if (match := CALL.match(line))]
        start = next(i for i, (_, name, rest) in enumerate(lines) if name == "munmap")
        seen, counts, found = set(), collections.Counter(), []
        for i, (thread, name, rest) in enumerate(lines):
            counts[thread, name] += 1
            if i <= start:
                continue
            key = (name, kind_of_thing(rest, self.folder))
            if key not in seen:
                seen.add(key)
                found.append((name, counts[thread, name], key[1]))
        return found

    def run_with_fault(self, operation, call, number, error):
        command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e",
                   f"inject={call}:error={error}:when={number}", *self.command(operation)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace", start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return None
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def judge(self, operation, call, error, run, broken):
        """The outcome in a word, and what is wrong with it."""
        if run is None:
            return "hangs", f"still runs after {TIME_LIMIT} s"
        wrong = self.store.wrong(broken)
        if wrong:
            return "wrong", f"wrong bytes in {wrong}"
        if run.returncode in (-6, 134, 128 + 6):
            return "aborted", ""
        if run.returncode < 0 or run.returncode >= 128 and run.returncode != 130:
            return "crashed", f"ended with {run.returncode}"
        if run.returncode == 0:
            problem = self.not_done(operation)
            if problem and operation == "gc" and error in GONE:
                return "taken for gone", ""
            return "done", problem
        if run.returncode == 127:
            return "not reached", ""
        if not run.stderr.strip() and not run.stdout.strip():
            if call == "write":  # every thread's n-th write fails, and the message is one
                return "exit code alone", ""
            return "silent", f"exit code {run.returncode} without a message"
        return "named error", "" if run.returncode <= 9 else f"exit code {run.returncode} is not documented"

    def not_done(self, operation):
        if operation == "gc":
            sizes = sum(len(data) for data in self.store.entries().values())
            limit = sum(map(len, self.release.bytes.values())) // 2
            return "" if sizes <= limit else f"exit 0, but {sizes} bytes are left"
        wrong, missing = self.store.wrong(), self.store.missing()
        return f"exit 0, but {wrong} are wrong and {missing} missing" if wrong or missing else ""

    def recover(self, operation):
        again = self.run_plain(operation)
        if again.returncode != 0 and not (operation == "repair" and again.returncode == 7):
            return f"the next run ends with {again.returncode}: {again.stderr[:300]}"
        if operation != "gc" and (self.store.wrong() or operation == "fetch" and self.store.missing()):
            return "the next run does not complete the store"
        if operation == "repair":
            self.run_plain("fetch")
        left = self.store.temporary()
        return f"the next run leaves {left}" if left else ""

    def cells(self, operation, only):
        for call, number, thing in self.calls(operation):
            if only and call != only:
                continue
            names = self.errnos.get(call, [])
            if not names:
                yield operation, call, thing, "-", "the page names no error", ""
            for error in names:
                broken = self.prepare(operation)
                run = self.run_with_fault(operation, call, number, error)
                outcome, problem = self.judge(operation, call, error, run, broken)
                problem = problem or self.recover(operation)
                text = "" if run is None else (run.stderr.strip() or run.stdout.strip())
                if problem:
                    self.problems.append(f"{operation}: {call} on {thing!r} #{number} fails with {error}: "
                                         f"{problem}\n    {text[:300]}")
                exit_code = "" if run is None else run.returncode
                yield operation, call, thing, error, outcome if not problem else "BROKEN", exit_code

    def end(self):
        self.nginx.end()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    tool, source_dir = sys.argv[1:3]
    out = sys.argv[3] if len(sys.argv) > 3 else os.devnull
    operations = sys.argv[4:] or OPERATIONS
    matrix = Matrix(tool, source_dir)
    begun = time.monotonic()
    tally = collections.defaultdict(collections.Counter)
    calls = collections.defaultdict(set)
    with open(out, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("command", "call", "on", "errno", "outcome", "exit_code"))
        for operation in operations:
            operation, _, only = operation.partition(":")
            for row in matrix.cells(operation, only):
                writer.writerow(row)
                stream.flush()
                tally[operation][row[4]] += row[3] != "-"
                calls[operation].add(row[1:3])
    matrix.end()
    for operation, outcomes in tally.items():
        print(f"{operation}: {len(calls[operation])} calls, {sum(outcomes.values())} cells: "
              + ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()) if count))
    print(f"{sum(sum(one.values()) for one in tally.values())} cells, none skipped, "
          f"{len(matrix.problems)} broken, {time.monotonic() - begun:.0f} s")
    for problem in matrix.problems:
        print(f"BROKEN {problem}", file=sys.stderr)
    return 1 if matrix.problems else 0


sys.exit(main())
