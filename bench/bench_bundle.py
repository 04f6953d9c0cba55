#!/usr/bin/env python3
"""Times of `cubist bundle` beside zip, unzip and a bare loop, over the same files in one run.

  bench_bundle.py TOOL MANIFEST SOURCE SET [ROUNDS]

MANIFEST  a manifest's name or file; SOURCE: a wheel or folder that has its kernels
SET       a working-set file, or --all

Prints a table in Markdown: medians in seconds of ROUNDS interleaved rounds, and ratios. The store that
kernels are taken from is filled before. `sync` runs after what does not make its files durable itself,
inside its time.
"""
import hashlib
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time


def run(*command, **options):
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL, **options)


def hash_all(folder):
    for path in folder.rglob("*.cubin"):
        if hashlib.sha256(path.read_bytes()).hexdigest() != path.stem:
            raise SystemExit(f"{path} is wrong")


class Bench:
    def __init__(self, tool, manifest, source, what, folder):
        self.tool, self.folder = tool, folder
        self.maker, self.store, self.plain = folder / "maker", folder / "store", folder / "plain"
        self.chosen = ["--all"] if what == "--all" else ["--working-set", what]
        self.create = [tool, "bundle", "create", "-m", manifest, *self.chosen, "--store", self.maker, "--offline", "-q"]
        run(tool, "fetch", "-m", manifest, *self.chosen, "--source", source, "--store", self.maker, "-q")

    def measured(self):
        bundle, stored, zipped = (self.folder / name for name in ("bundle.zip", "stored.zip", "plain.zip"))
        return {
            "bundle create": lambda: run(*self.create, "-o", bundle),
            "bundle create --stored": lambda: run(*self.create, "-o", stored, "--stored"),
            "zip -r, sync": lambda: (run("zip", "-qr", zipped, "sha256", cwd=self.maker), run("sync")),
            "bundle inspect --verify": lambda: run(self.tool, "bundle", "inspect", bundle, "--verify"),
            "unzip -t": lambda: run("unzip", "-qqt", bundle),
            "bundle install": lambda: run(self.tool, "bundle", "install", bundle, "--store", self.store, "-q"),
            "unzip, sha256 of each, sync": lambda: (run("unzip", "-qq", bundle, "-d", self.plain), hash_all(self.plain),
                                                    run("sync")),
            "bundle install, all there": lambda: run(self.tool, "bundle", "install", bundle, "--store", self.store, "-q"),
            "sha256 of each": lambda: hash_all(self.store / "sha256"),
        }

    def clear(self):
        for name in ("bundle.zip", "stored.zip", "plain.zip"):
            (self.folder / name).unlink(missing_ok=True)
        for folder in (self.store, self.plain):
            shutil.rmtree(folder, ignore_errors=True)
        run("sync")


def main():
    tool, manifest, source, what = sys.argv[1:5]
    rounds = int(sys.argv[5]) if len(sys.argv) > 5 else 5
    with tempfile.TemporaryDirectory(prefix="cubist-bench-bundle-", dir=os.environ.get("TMPDIR")) as name:
        bench = Bench(os.path.abspath(tool), manifest, source, what, pathlib.Path(name))
        steps = bench.measured()
        seconds = {step: [] for step in steps}
        for _ in range(rounds):
            bench.clear()
            for step, work in steps.items():
                started = time.monotonic()
                work()
                seconds[step].append(time.monotonic() - started)
                print(f"{step}: {seconds[step][-1]:.3f} s", file=sys.stderr, flush=True)
        kernels = [path.stat().st_size for path in bench.maker.rglob("*.cubin")]
        print(f"{len(kernels)} kernels, {sum(kernels)} bytes; bundle {(bench.folder / 'bundle.zip').stat().st_size}, "
              f"--stored {(bench.folder / 'stored.zip').stat().st_size}, zip {(bench.folder / 'plain.zip').stat().st_size}; "
              f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {rounds} rounds\n")
    median = {step: statistics.median(list_) for step, list_ in seconds.items()}
    beside = {"bundle create": "zip -r, sync", "bundle inspect --verify": "unzip -t",
              "bundle install": "unzip, sha256 of each, sync", "bundle install, all there": "sha256 of each"}
    print("| step | median s | min..max s | beside it |\n|---|---|---|---|")
    for step, list_ in seconds.items():
        ratio = f"{median[step] / median[beside[step]]:.2f} of {beside[step]}" if step in beside else ""
        print(f"| {step} | {median[step]:.3f} | {min(list_):.3f}..{max(list_):.3f} | {ratio} |")


main()
