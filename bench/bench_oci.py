#!/usr/bin/env python3
"""Push and pull beside skopeo copying the same blobs, in turn, on one machine with one docker-registry.

  bench_oci.py TOOL BUNDLE [ROUNDS]     BUNDLE: what 'cubist bundle create' made

Each round, from a registry and page cache in the same state for both:
  push   cubist push FILE        beside  skopeo copy dir: -> registry (the same manifest and blobs)
  file   cubist pull -o FILE     beside  skopeo copy registry -> dir:
  store  cubist pull --store     beside  the same skopeo copy, which unpacks, hashes and installs no kernel
Prints medians and their ratios. A repository is new for every push, so that no blob is there before.
"""
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/support"))
from oci_registry import DockerRegistry  # noqa: E402


def timed(*command):
    os.sync()
    begun = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    took = time.monotonic() - begun
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr[-1000:]}")
    return took


def skopeo(source, target):
    return timed("skopeo", "copy", "--quiet", "--src-tls-verify=false", "--dest-tls-verify=false", source, target)


class Bench:
    def __init__(self, tool, bundle):
        self.tool, self.bundle = tool, pathlib.Path(bundle)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-oci-bench-", dir=self.bundle.parent))
        self.registry = self.fresh_registry(0)
        self.took = {name: [] for name in ("push", "push skopeo", "file", "store", "pull skopeo")}

    def fresh_registry(self, number):
        return DockerRegistry(self.folder / f"registry{number}")

    def anew(self, number):
        """An empty registry: blobs of one repository are known to the whole of it."""
        self.registry.end()
        shutil.rmtree(self.registry.folder)
        self.registry = self.fresh_registry(number)
        return self.registry.host

    def one_round(self, number):
        host = self.anew(f"{number}-cubist")
        self.took["push"].append(timed(self.tool, "push", self.bundle, f"oci://{host}/ours:1", "--quiet"))
        for name in ("dir", "store", "pulled.zip"):
            path = self.folder / name
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
        self.took["pull skopeo"].append(skopeo(f"docker://{host}/ours:1", f"dir:{self.folder}/dir"))
        self.took["file"].append(
            timed(self.tool, "pull", f"oci://{host}/ours:1", "-o", self.folder / "pulled.zip", "--quiet"))
        self.took["store"].append(
            timed(self.tool, "pull", f"oci://{host}/ours:1", "--store", self.folder / "store", "--quiet"))
        host = self.anew(f"{number}-skopeo")
        self.took["push skopeo"].append(skopeo(f"dir:{self.folder}/dir", f"docker://{host}/theirs:1"))

    def report(self):
        median = {name: statistics.median(times) for name, times in self.took.items()}
        print(f"{self.bundle.name}, {self.bundle.stat().st_size / 1e6:.1f} MB, {len(self.took['push'])} rounds; load "
              f"{os.getloadavg()[0]:.1f}")
        for what, ours, theirs in (("push FILE", "push", "push skopeo"), ("pull -o FILE", "file", "pull skopeo"),
                                   ("pull --store", "store", "pull skopeo")):
            print(f"{what:14} {median[ours]:7.2f} s, skopeo {median[theirs]:7.2f} s, ratio {median[ours] / median[theirs]:.2f}")
        print("all: " + ", ".join(f"{name} {' '.join(f'{t:.2f}' for t in times)}" for name, times in self.took.items()))

    def end(self):
        self.registry.end()
        shutil.rmtree(self.folder)


def main():
    tool, bundle = sys.argv[1:3]
    bench = Bench(tool, bundle)
    for number in range(int(sys.argv[3]) if len(sys.argv) > 3 else 5):
        bench.one_round(number)
    bench.report()
    bench.end()


main()
