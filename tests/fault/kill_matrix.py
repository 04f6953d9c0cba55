#!/usr/bin/env python3
"""kill -9 at random moments over fetch, repair and gc, against an nginx of this machine.

  kill_matrix.py TOOL SOURCE_DIR [KILLS [SEED]]

After every kill: no entry may hold wrong bytes (other than those this program damaged), the same
command run again must end well and leave no temporary file, and then the store must be complete.
Prints the figures; ends with 1 at the first violation.
"""
import random
import shutil
import subprocess
import sys
import tempfile
import time

import killing
from made_release import Release, StoreView
from nginx import Nginx

KERNELS = 60
OPERATIONS = ("fetch", "repair", "gc")
PARALLEL = (1, 2, 3)  # processes of the same kind at once, all killed


class Matrix:
    def __init__(self, tool, source_dir, seed):
        self.tool = tool
        self.random = random.Random(seed)
        self.folder = tempfile.mkdtemp(prefix="cubist-kill-")
        self.release = Release(source_dir, self.folder, KERNELS)
        self.nginx = Nginx(self.folder + "/nginx", self.release.tree)
        self.manifest = self.release.write_manifest("m.json", {"type": "http", "location": self.nginx.url})
        self.root = self.folder + "/store"
        self.store = StoreView(self.root, self.release)
        self.total = sum(map(len, self.release.bytes.values()))
        self.took = {name: 0.1 for name in OPERATIONS}
        self.rounds = 0
        self.figures = {name: dict(kills=0, survived=0, temporary=0, incomplete=0) for name in OPERATIONS}

    def command(self, operation):
        keep = self.total // 2
        return {
            "fetch": [self.tool, "fetch", "-m", self.manifest, "--store", self.root, "--all"],
            "repair": [self.tool, "verify", "-m", self.manifest, "--store", self.root, "--repair"],
            "gc": [self.tool, "gc", "--store", self.root, "--max-size", str(keep)],
        }[operation]

    def run(self, operation):
        return subprocess.run(self.command(operation), capture_output=True, text=True, check=False)

    def damage(self):
        """Breaks some entries in the ways disks and people do; returns name -> bytes."""
        damaged = {}
        for digest in self.random.sample(sorted(self.release.bytes), self.random.randrange(1, 12)):
            data = bytearray(self.release.bytes[digest])
            kind = self.random.randrange(5)
            if kind == 0:
                data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
            elif kind == 1:
                del data[len(data) // 2:]
            elif kind == 2:
                data[len(data) // 2:] = bytes(len(data) - len(data) // 2)
            elif kind == 3:
                data = bytearray(b"<!DOCTYPE html><html>log in</html>")
            else:
                data = bytearray(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
            path = self.store.path(digest)
            path.chmod(0o644)
            path.write_bytes(bytes(data))
            damaged[path.name] = bytes(data)
        return damaged

    def prepare(self, operation):
        """The store as the command is to find it: complete, but for what the command is for."""
        if operation == "fetch":
            if self.random.random() < 0.2:
                shutil.rmtree(self.root, ignore_errors=True)
                return {}
            for digest in self.random.sample(sorted(self.release.bytes), self.random.randrange(1, KERNELS)):
                self.store.path(digest).unlink(missing_ok=True)
        return self.damage() if operation == "repair" else {}

    def expect(self, ok, what):
        if not ok:
            raise AssertionError(f"{what}; the store is kept in {self.root}")

    def kill_one_round(self, operation):
        damaged = self.prepare(operation)
        started = time.monotonic()
        processes = [subprocess.Popen(self.command(operation), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                     for _ in range(self.random.choice(PARALLEL))]
        time.sleep(self.random.random() * self.took[operation])
        figures = self.figures[operation]
        for process in processes:
            process.kill()
        for process in processes:
            figures["kills" if process.wait() == -9 else "survived"] += 1
        took = time.monotonic() - started
        figures["temporary"] += len(self.store.temporary())
        figures["incomplete"] += bool(self.store.missing())
        self.expect(not (bad := self.store.wrong(damaged)), f"after a killed {operation}: wrong bytes in {bad}")
        self.recover(operation, damaged)
        return took

    def recover(self, operation, damaged):
        again = self.run(operation)
        text = again.stdout + again.stderr
        # Repair does not fetch what is missing: 7 says that something is.
        self.expect(again.returncode == 0 or (operation == "repair" and again.returncode == 7),
                    f"{operation} after a kill ends with {again.returncode}: {text}")
        self.expect(not (left := self.store.temporary()), f"{operation} left {left}")
        allowed = damaged if operation == "gc" else None
        self.expect(not (bad := self.store.wrong(allowed)), f"{operation} left wrong bytes in {bad}")
        if operation != "fetch":
            again = self.run("fetch")
            self.expect(again.returncode == 0, f"fetch after {operation} fails: {again.stderr}")
        self.expect(not self.store.missing() and not self.store.wrong(), "the store is not whole")
        self.expect(not (left := self.store.temporary()), f"fetch left {left}")

    def measure(self):
        """How long each command takes here, so that kills fall into all of it."""
        first = self.run("fetch")
        self.expect(first.returncode == 0, f"fetch fails: {first.stderr}")
        for operation in OPERATIONS:
            times = []
            for _ in range(5):
                self.prepare(operation)
                begun = time.monotonic()
                self.run(operation)
                times.append(time.monotonic() - begun)
                self.run("repair")
                self.run("fetch")
            self.took[operation] = sorted(times)[len(times) // 2] * 1.1

    def one_round(self):
        self.kill_one_round(OPERATIONS[self.rounds % len(OPERATIONS)])
        self.rounds += 1

    def all_kills(self):
        return sum(one["kills"] for one in self.figures.values())

    def report(self, seconds):
        print(f"{'':8} {'killed':>8} {'ended first':>12} {'unfinished files seen':>22} {'stores left incomplete':>23}")
        for name, one in self.figures.items():
            print(f"{name:8} {one['kills']:8} {one['survived']:12} {one['temporary']:22} {one['incomplete']:23}")
        print(f"{self.all_kills()} kills in {seconds:.0f} s: 0 wrong bytes, 0 stores that a next run did not "
              f"complete, 0 temporary files left past the next run")

    def end(self, keep):
        self.nginx.end()
        if not keep:
            shutil.rmtree(self.folder, ignore_errors=True)


sys.exit(killing.run(Matrix, 1000))
