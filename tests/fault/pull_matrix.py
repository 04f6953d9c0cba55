#!/usr/bin/env python3
"""kill -9 at random moments over `cubist pull`, into a store (as a bundle, and unpacked) and into a file, from docker-registry.

  pull_matrix.py TOOL SOURCE_DIR [KILLS [SEED]]

After every kill: no entry and no bundle of the store holds wrong bytes, no manifest is there before all of its kernels are,
and a file that is there is whole. The same command run again must end well and leave nothing behind, and then
the store, or the file, is complete. Judged by this program, not by the product.
"""
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import killing  # noqa: E402
from made_release import Release, StoreView  # noqa: E402
from oci_registry import DockerRegistry  # noqa: E402

KERNELS = 60
LAYER = 100_000
OPERATIONS = ("store", "unpacked", "file")
PARALLEL = (1, 2)  # processes that pull the same at once, all killed


class Matrix:
    def __init__(self, tool, source_dir, seed):
        self.tool, self.random = tool, random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-pull-"))
        os.environ.update(CUBIST_CONFIG="", CUBIST_PROJECT="", CUBIST_MANIFESTS=f"{source_dir}/manifests")
        self.release = Release(source_dir, self.folder, KERNELS)
        self.release.document["name"] = "made"  # the name of a shipped manifest is taken
        self.registry = DockerRegistry(self.folder / "registry")
        self.place = f"oci://{self.registry.host}/kernels:1"
        document = self.release.write_manifest("made.json", {"type": "folder", "location": str(self.release.tree)})
        self.bundle = self.folder / "made.zip"
        self.do("bundle", "create", "--manifest", document, "--all", "-o", self.bundle, "--store", self.folder / "made")
        self.do("push", self.bundle, self.place, "--layer-bytes", str(LAYER))
        self.root, self.file = self.folder / "store", self.folder / "pulled.zip"
        self.store = StoreView(self.root, self.release)
        self.took = {}
        self.rounds = 0
        self.figures = {name: dict(kills=0, survived=0, partial=0, incomplete=0) for name in OPERATIONS}

    def do(self, *arguments):
        done = subprocess.run([self.tool, *map(str, arguments)], capture_output=True, text=True, check=False)
        self.expect(done.returncode == 0, f"{arguments[0]} ends with {done.returncode}: {done.stderr}")

    def command(self, operation):
        target = {"store": ["--store", self.root], "unpacked": ["--store", self.root, "--unpack"],
                  "file": ["-o", self.file]}[operation]
        return [self.tool, "pull", self.place, *map(str, target), "--quiet", "--parallel", "3"]

    def expect(self, good, what):
        if not good:
            raise AssertionError(f"{what}; everything is kept in {self.folder}")

    def prepare(self, operation):
        """Nothing there, or in a store some of it."""
        self.file.unlink(missing_ok=True)
        if operation == "file" or not self.root.exists():
            return
        if self.random.random() < 0.3:
            shutil.rmtree(self.root)
            return
        for path in self.root.glob("manifests/*"):
            path.unlink()
        if self.random.random() < 0.7:
            shutil.rmtree(self.root / "bundles", ignore_errors=True)
        for digest in self.random.sample(sorted(self.release.bytes), self.random.randrange(1, KERNELS)):
            self.store.path(digest).unlink(missing_ok=True)

    def partial(self, operation):
        return list(self.folder.glob("pulled.zip.*")) if operation == "file" else self.store.temporary()

    def look(self, operation, when):
        if operation == "file":
            whole = not self.file.exists() or self.file.read_bytes() == self.bundle.read_bytes()
            return self.expect(whole, f"{when}: the file is there and not whole")
        self.expect(not (bad := self.store.wrong()), f"{when}: wrong bytes in {bad}")
        if list(self.root.glob("manifests/*.json")):
            self.expect(not self.store.missing(), f"{when}: a manifest without all of its kernels")

    def complete(self, operation):
        if operation == "file":
            return self.file.exists()
        return not (self.store.missing() if operation == "store" else self.store.no_entries())

    def one_round(self):
        operation = OPERATIONS[self.rounds % len(OPERATIONS)]
        self.rounds += 1
        self.prepare(operation)
        processes = [subprocess.Popen(self.command(operation), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                     for _ in range(self.random.choice(PARALLEL))]
        time.sleep(self.random.random() * self.took[operation])
        figures = self.figures[operation]
        for process in processes:
            process.kill()
        for process in processes:
            figures["kills" if process.wait() == -9 else "survived"] += 1
        figures["partial"] += len(self.partial(operation))
        figures["incomplete"] += not self.complete(operation)
        self.look(operation, "after a kill")
        self.do(*self.command(operation)[1:])
        self.look(operation, "afterwards")
        self.expect(self.complete(operation), "the same command does not complete it")
        self.expect(not (left := self.partial(operation)), f"left behind: {left}")

    def measure(self):
        for operation in OPERATIONS:
            times = []
            for _ in range(5):
                shutil.rmtree(self.root, ignore_errors=True)
                self.file.unlink(missing_ok=True)
                begun = time.monotonic()
                self.do(*self.command(operation)[1:])
                times.append(time.monotonic() - begun)
            self.took[operation] = sorted(times)[2] * 1.1

    def all_kills(self):
        return sum(one["kills"] for one in self.figures.values())

    def report(self, seconds):
        print(f"{'pull into':10} {'killed':>8} {'ended first':>12} {'parts seen':>12} {'left incomplete':>16}")
        for name, one in self.figures.items():
            print(f"{name:10} {one['kills']:8} {one['survived']:12} {one['partial']:12} {one['incomplete']:16}")
        print(f"{self.all_kills()} kills in {seconds:.0f} s: 0 wrong bytes, 0 manifests before their kernels, 0 pulls that the "
              f"same command did not complete, 0 files left past it")

    def end(self, keep):
        self.registry.end()
        if not keep:
            shutil.rmtree(self.folder)


sys.exit(killing.run(Matrix, 300))
