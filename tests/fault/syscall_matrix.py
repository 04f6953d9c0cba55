#!/usr/bin/env python3
"""Fetch, repair and gc with each of their system calls failing once, with each errno its manual page names.

  syscall_matrix.py TOOL SOURCE_DIR [OUT.csv [OPERATION[:CALL]...]]

The calls are those of an strace of each command from its first own instruction on: a preloaded
constructor stops the program once the loader is done, and strace attaches then. Calls of one name on one
kind of thing (an entry, the lock file, a socket) are one call here: its first one fails. Errors come from
errnos.json. strace counts per thread, so a cell is run until its log says that the call meant failed (four
times at most; then the call that did fail is written down). A cell is a command, a call, an errno:

  done             exit 0, and all is as after a run without fault
  done, told gone  gc was told that something is not there, as when another gc has just removed it: what
                   is left of all else is within the cap
  named error      an exit code of the documented ones, and a message
  message lost     the same, but the log shows the write of the message failing as well
  libc aborts      the C library ends the process at an error of futex it does not expect, and says so; only
                   for errors that cannot come of that operation, or only of its misuse (printed at the end)
  libc waits       the C library passes over such an error of a wake-up, so that a thread sleeps on; killed then
  not reached      in four runs no such call was made

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
TRIES = 4
# The C library's own end at an error of futex that it does not expect. Which ones can come depends on the
# operation; by section ERRORS of the page:
FUTEX_ABORT = "The futex facility returned an unexpected error code"
FUTEX_ERRORS = {"FUTEX_WAKE": ("EACCES", "EFAULT", "EINVAL", "ENOSYS"),
                "FUTEX_WAIT": ("EACCES", "EAGAIN", "EFAULT", "EINTR", "EINVAL", "ENOSYS", "ETIMEDOUT"),
                "FUTEX_WAIT_BITSET": ("EACCES", "EAGAIN", "EFAULT", "EINTR", "EINVAL", "ENOSYS", "ETIMEDOUT")}
# Of these the ones that say a program misuses the call: bad addresses, alignments and operations.
FUTEX_MISUSE = ("EACCES", "EFAULT", "EINVAL", "ENOSYS")
STOP = """#include <signal.h>
__attribute__((constructor)) static void stop(void) { raise(SIGSTOP); }
"""
CALL = re.compile(r"^(\d+)\s+(\w+)\((.*)$")
INJECTED = re.compile(r"= -1 (E\w+) .*\(INJECTED\)$")


def kind_of_thing(arguments, folder):
    """What a call is about, without what differs from run to run."""
    named = re.findall(r'"((?:[^"\\]|\\.)*)"|\d<([^>]*)>', arguments)
    texts = [quoted or descriptor for quoted, descriptor in named]
    # The descriptor says which file; a path relative to the working folder says it better.
    text = next((t for t in texts if t.startswith("/") and t != os.getcwd()), texts[0] if texts else "")
    if re.match(r"\d+<", arguments):
        text = texts[0]
    if operation := re.match(r"0x[0-9a-f]+, (FUTEX_[A-Z_]+?)(?:_PRIVATE)?[,|]", arguments):
        return operation[1]
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
        self.trace = self.folder + "/trace"
        self.stop = self.folder + "/stop.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", self.stop], input=STOP, text=True, check=True)
        self.errnos = json.loads(pathlib.Path(__file__).with_name("errnos.json").read_text())
        done = self.run_plain("fetch")
        assert done.returncode == 0, done.stderr
        shutil.copytree(self.root, self.template)
        self.victim = sorted(self.release.bytes)[1]
        self.problems = []
        self.reasons = collections.defaultdict(set)

    def command(self, operation):
        return [str(part) for part in {
            "fetch": (self.tool, "fetch", "-m", self.manifest, "--store", self.root, "--all", *PATIENCE),
            "repair": (self.tool, "verify", "-m", self.manifest, "--store", self.root, "--repair", *PATIENCE),
            "gc": (self.tool, "gc", "--store", self.root, "--max-size", self.cap()),
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

    def traced(self, operation, *options):
        """The command under strace from its constructors on; the log is in self.trace. None: it hung."""
        pathlib.Path(self.trace).unlink(missing_ok=True)
        tool = subprocess.Popen(self.command(operation), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                errors="replace", start_new_session=True, env=dict(os.environ, LD_PRELOAD=self.stop))
        self.until(tool.pid, "State:\tT")
        strace = subprocess.Popen(["strace", "-f", "-y", "-qq", "-s", "200", "-e", "signal=none", "-o", self.trace,
                                   "-p", str(tool.pid), *options], stderr=subprocess.DEVNULL)
        self.until(tool.pid, f"TracerPid:\t{strace.pid}")
        os.kill(tool.pid, signal.SIGCONT)
        try:
            out, err = tool.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(tool.pid, signal.SIGKILL)
            tool.communicate()
            return None
        finally:
            strace.wait()
        return subprocess.CompletedProcess(tool.args, tool.returncode, out, err)

    @staticmethod
    def until(pid, line):
        deadline = time.monotonic() + TIME_LIMIT
        while line not in pathlib.Path(f"/proc/{pid}/status").read_text():
            if time.monotonic() > deadline:
                raise RuntimeError(f"process {pid} never came to {line!r}")
            time.sleep(0.001)

    def logged(self):
        """(thread, call, rest of the line) of the last trace, what was cut in two put together."""
        begun, found = {}, []
        for line in open(self.trace, errors="replace"):
            line = line.rstrip("\n")
            thread = line.split(" ", 1)[0]
            if line.endswith("<unfinished ...>"):
                begun[thread] = len(found)
                line = line[:-len("<unfinished ...>")]
            elif resumed := re.match(r"^\d+\s+<\.\.\. \w+ resumed>(.*)$", line):
                if thread in begun:
                    at = begun.pop(thread)
                    found[at] = (*found[at][:2], found[at][2] + resumed[1])
                continue
            if match := CALL.match(line):
                found.append(match.groups())
        return found

    def calls(self, operation):
        """(call, which one of its thread, kind of thing), each kind once, in the order of the trace."""
        self.prepare(operation)
        self.traced(operation)
        seen, counts, found = set(), collections.Counter(), []
        for thread, name, rest in self.logged():
            counts[thread, name] += 1
            key = (name, kind_of_thing(rest, self.folder))
            if key not in seen:
                seen.add(key)
                found.append((name, counts[thread, name], key[1]))
        return found

    def run_with_fault(self, operation, call, number, thing, error):
        """Returns what the run gave, the entries wrong from the start, and (kind, line) of each call that
        failed on purpose: one on `thing`, if any of a few runs had that."""
        for attempt in range(TRIES):
            broken = self.prepare(operation)
            # Not that many calls in any thread this time: an earlier one.
            when = number if attempt < 2 else max(1, number - attempt + 1)
            run = self.traced(operation, "-e", f"trace={call},tgkill", "-e",
                              f"inject={call}:error={error}:when={when}")
            lines = self.logged()
            # Other threads' n-th calls fail too. Where one aborts, it is that one's that counts.
            aborted = [thread for thread, name, rest in lines if name == "tgkill" and "SIGABRT" in rest]
            hits = [(kind_of_thing(rest, self.folder), rest) for thread, name, rest in lines
                    if name == call and INJECTED.search(rest) and (not aborted or thread == aborted[0])]
            if run is None or any(kind == thing for kind, _ in hits):
                break
        return run, broken, hits

    def why_futex(self, thing, line, error):
        """Notes why no kernel gives this error here; what is wrong if one could."""
        if error not in FUTEX_ERRORS.get(thing, FUTEX_ERRORS["FUTEX_WAIT"]):
            self.reasons[thing, "named for other operations alone"].add(error)
        elif error in FUTEX_MISUSE:
            self.reasons[thing, "named for a misuse of the call"].add(error)
        elif error == "ETIMEDOUT" and ", NULL" in line:
            self.reasons[thing, "named for a call with a timeout alone"].add(error)
        else:
            return f"aborts at {error} of {thing}, which can come"
        return ""

    def judge(self, operation, call, thing, error, run, broken, hits):
        """The outcome in a word, and what is wrong with it."""
        wrong = self.store.wrong(broken)
        if run is None and call == "futex" and error in ("EFAULT", "EINVAL") and not wrong and \
                any(kind == "FUTEX_WAKE" for kind, _ in hits):
            self.reasons["FUTEX_WAKE", "a wake-up is lost, which glibc passes over; named for a misuse"].add(error)
            return "libc waits", ""
        if run is None:
            return "hangs", f"still runs after {TIME_LIMIT} s"
        if wrong:
            return "wrong", f"wrong bytes in {wrong}"
        if run.returncode == -signal.SIGABRT and call == "futex" and FUTEX_ABORT in run.stderr:
            return "libc aborts", self.why_futex(*(hits[-1] if hits else (thing, "")), error)
        if run.returncode < 0 or run.returncode > 9:
            return "crashed", f"ended with {run.returncode}"
        if not hits:
            return "not reached", "" if run.returncode == 0 else f"no call failed, but exit code {run.returncode}"
        if run.returncode == 0:
            problem = self.not_done(operation)
            if problem and operation == "gc" and error in GONE:
                return "done, told gone", self.left_besides(hits)
            return "done", problem
        if not run.stderr.strip() and not run.stdout.strip():
            said = call == "write" and any(re.match(r'[12]<.*"cubist: error: ', line) for _, line in hits)
            return ("message lost", "") if said else ("silent", f"exit code {run.returncode} without a message")
        return "named error", ""

    def cap(self):
        return sum(map(len, self.release.bytes.values())) // 2

    def left_besides(self, hits):
        """What is wrong with a store that gc left, if what the failed calls were about was not there."""
        gone = [path for _, line in hits for path in re.findall(r'[<"](/[^>"]*)[>"]', line.split(" = -1 ")[0])]
        # A name relative to a folder's descriptor.
        gone += [f"{folder}/{name}" for _, line in hits
                 for folder, name in re.findall(r'^\d+<(/[^>]*)>, "([^/"][^"]*)"', line)]
        gone = [path for path in gone if path.startswith(self.root + "/sha256")]
        sizes = sum(path.stat().st_size for path in pathlib.Path(self.root).glob("sha256/*/*")
                    if not any(str(path) == one or str(path).startswith(one + "/") for one in gone))
        return "" if gone and sizes <= self.cap() else f"{sizes} bytes are left besides {gone}"

    def not_done(self, operation):
        if operation == "gc":
            sizes = sum(len(data) for data in self.store.entries().values())
            return "" if sizes <= self.cap() else f"exit 0, but {sizes} bytes are left"
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
                run, broken, hits = self.run_with_fault(operation, call, number, thing, error)
                outcome, problem = self.judge(operation, call, thing, error, run, broken, hits)
                hit = thing if not hits or any(kind == thing for kind, _ in hits) else hits[0][0]
                problem = problem or self.recover(operation)
                text = "" if run is None else (run.stderr.strip() or run.stdout.strip())
                if problem:
                    self.problems.append(f"{operation}: {call} on {thing!r} #{number} fails with {error}: "
                                         f"{problem}\n    {text[:300]}")
                exit_code = "" if run is None else run.returncode
                yield operation, call, hit, error, outcome if not problem else "BROKEN", exit_code

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
    for (thing, why), names in sorted(matrix.reasons.items()):
        print(f"the C library ends or waits at {', '.join(sorted(names))} of {thing}: {why}")
    for problem in matrix.problems:
        print(f"BROKEN {problem}", file=sys.stderr)
    return 1 if matrix.problems else 0


sys.exit(main())
