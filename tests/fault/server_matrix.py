#!/usr/bin/env python3
"""Every way the small server misbehaves at every stage of a fetch.

  server_matrix.py TOOL SOURCE_DIR [OUT.csv]

Stages: a file of a tree at the first try; at the second try, after a fault of the server; the rest of
a file that broke off; a file behind a redirect; a remote wheel's directory; a member of that wheel; the
page of a package index. After every cell the entry is right or absent and nothing else is left; a
failure has a documented exit code and names the file's kernel; a fetch from a well-behaved server then
completes. Prints the number of cells; ends with 1 if one breaks that.
"""
import collections
import csv
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

from made_release import PREFIX, Release, StoreView

WHEEL = "pack-1.0-py3-none-any.whl"
# What is asked of the server for a stage; {} is the behaviour.
STAGES = {
    "file": ("http", "at-1-{}/"),
    "file, second try": ("http", "first-500-then-{}/"),
    "rest of a file": ("http", "first-truncate-then-{}/"),
    "behind a redirect": ("http", "away-to-{}/"),
    "wheel directory": ("zip", "at-1-{}/" + WHEEL),
    "wheel member": ("zip", "at-2-{}/" + WHEEL),
    "index page": ("pip", "at-1-{}/simple"),
}
TIME_LIMIT = 60


class Matrix:
    def __init__(self, tool, source_dir):
        self.tool, self.source_dir = tool, pathlib.Path(source_dir)
        self.folder = tempfile.mkdtemp(prefix="cubist-servers-")
        self.release = Release(source_dir, self.folder, 2, sizes=(60_000, 90_000))
        tree = self.release.tree
        with zipfile.ZipFile(tree / WHEEL, "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr("pack/__init__.py", "")
            for path in sorted((tree / PREFIX).iterdir()):
                wheel.write(path, PREFIX + path.name)
        (tree / "simple/pack").mkdir(parents=True)
        (tree / "simple/pack/index.html").write_text(f"<a href='../../{WHEEL}'>{WHEEL}</a>")
        self.script = self.source_dir / "tests/support/mischief_server.py"
        port_file = pathlib.Path(self.folder) / "port"
        self.server = subprocess.Popen([sys.executable, str(self.script), str(tree), str(port_file)])
        while not port_file.exists():
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{port_file.read_text()}"
        self.root = self.folder + "/store"
        self.store = StoreView(self.root, self.release)
        self.digest = self.release.document["packs"][0]["kernels"][0]["sha256"]
        self.problems = []

    def behaviours(self):
        """All that the server knows."""
        names = re.findall(r"^    def do_(\w+)\(self", self.script.read_text(), re.M)
        return [name.replace("_", "-") for name in names if name != "GET"]

    def fetch(self, kind, location):
        source = {"type": kind, "location": location}
        manifest = self.release.write_manifest("m.json", source)
        environment = dict(os.environ, PIP_CONFIG_FILE="/dev/null", PIP_EXTRA_INDEX_URL="", PIP_FIND_LINKS="",
                           PIP_INDEX_URL=getattr(self, "index", ""), no_proxy="127.0.0.1,localhost")
        try:
            return subprocess.run([self.tool, "fetch", "-m", str(manifest), "--store", self.root, "--kernel",
                                   "kernel_00000", "--stall-timeout", "0.3", "--connect-timeout", "2", "--tries", "2"],
                                  capture_output=True, text=True, errors="replace", env=environment, check=False,
                                  timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            return None

    def judge(self, run):
        if run is None:
            return "hangs", f"still runs after {TIME_LIMIT} s"
        there = self.store.path(self.digest).exists()
        others = [name for name in self.store.temporary() if not name.endswith(".resume")]
        if self.store.wrong():
            return "wrong", "wrong bytes in the store"
        if others:
            return "left over", f"left {others}"
        if run.returncode == 0:
            return "served", "" if there else "exit 0 without the entry"
        outcome = {4: "refused: integrity", 5: "refused: network"}.get(run.returncode, "undocumented")
        if outcome == "undocumented" or "kernel_00000" not in run.stderr or there:
            return outcome, f"exit code {run.returncode}: {run.stderr[:300]}"
        return outcome, ""

    def cell(self, stage, behaviour, number):
        kind, path = STAGES[stage]
        shutil.rmtree(self.root, ignore_errors=True)
        location = f"{self.url}/n{number}/{path.format(behaviour)}"
        if kind == "pip":
            self.index, location = location, "pack==1.0"
        run = self.fetch(kind, location.rstrip("/"))
        outcome, problem = self.judge(run)
        if not problem:
            again = self.fetch("http", self.url + "/ok")
            if again is None or again.returncode != 0 or self.store.wrong() or not self.store.path(self.digest).exists():
                problem = "a fetch from a good server fails afterwards"
            elif self.store.temporary():
                problem = f"a fetch from a good server leaves {self.store.temporary()}"
        if problem:
            self.problems.append(f"{stage}, {behaviour}: {problem}")
        message = "" if run is None or run.returncode == 0 else run.stderr
        return outcome, self.in_short(message)

    def in_short(self, message):
        """What was wrong with the answer, without what differs from run to run."""
        lines = [line.strip() for line in message.splitlines() if line.startswith("  ") and "without a network" not in line]
        text = lines[0] if lines else message.strip()
        for pattern, name in ((re.escape(self.folder), ""), (r"https?://[^\s,;]*[^\s:,;]", "URL"), (r"[0-9a-f]{64}", "DIGEST"),
                              (r"\d{5}", "N")):
            text = re.sub(pattern, name, text)
        return text.removeprefix("URL: ")[:160]

    def end(self):
        self.server.kill()
        self.server.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    tool, source_dir = sys.argv[1:3]
    out = sys.argv[3] if len(sys.argv) > 3 else os.devnull
    matrix = Matrix(tool, source_dir)
    begun, number = time.monotonic(), 0
    tally = collections.defaultdict(collections.Counter)
    with open(out, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("stage", "misbehaviour", "outcome", "message"))
        for stage in STAGES:
            for behaviour in matrix.behaviours():
                number += 1
                outcome, message = matrix.cell(stage, behaviour, number)
                writer.writerow((stage, behaviour, outcome, message))
                tally[stage][outcome] += 1
    matrix.end()
    for stage, outcomes in tally.items():
        print(f"{stage}: {sum(outcomes.values())} cells: "
              + ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())))
    print(f"{number} cells, none skipped, {len(matrix.problems)} broken, {time.monotonic() - begun:.0f} s")
    for problem in matrix.problems:
        print(f"BROKEN {problem}", file=sys.stderr)
    return 1 if matrix.problems else 0


sys.exit(main())
