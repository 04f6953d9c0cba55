#!/usr/bin/env python3
"""kill -9 at random moments over `cubist bundle install`.

  bundle_kills.py TOOL SOURCE_DIR [KILLS [SEED]]

Of the installs a half unpacks. After every kill: no entry and no bundle holds wrong bytes; a manifest that is visible is whole, has its signature
beside it, and every kernel it came with is there; the same command run again ends well and leaves no
temporary file, and the store is complete. Prints the figures; ends with 1 at the first violation.
"""
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

import killing
from made_release import PREFIX, Release, StoreView

KERNELS = 300


class Kills:
    def __init__(self, tool, source_dir, seed):
        self.tool, self.random = tool, random.Random(seed)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-bundle-kill-"))
        self.release = Release(source_dir, self.folder, KERNELS)
        self.release.document["name"] = "made"
        self.bundles = [self.make(version) for version in ("old", "new")]
        self.root = self.folder / "store"
        self.store = StoreView(self.root, self.release)
        self.manifest = self.root / "manifests/made.json"
        self.took = 0.2
        self.figures = dict(kills=0, survived=0, temporary=0, incomplete=0, unseen=0, replaced=0, unpacked=0)

    def make(self, version):
        """A bundle of all kernels; the versions differ in their manifests alone."""
        self.release.document["description"] = version
        source = {"type": "folder", "location": str(self.release.tree), "prefix": PREFIX}
        manifest = self.release.write_manifest(f"{version}.json", source)
        signature = self.folder / f"{version}.json.minisig"
        signature.write_text(f"untrusted comment: no key is trusted here\n{version}\n")
        bundle = self.folder / f"{version}.zip"
        subprocess.run([self.tool, "bundle", "create", "-m", manifest, "--all", "-o", bundle, "-q",
                        "--store", self.folder / "makers-store"], check=True)
        return bundle, manifest.read_text(), signature.read_text()

    def command(self, bundle, unpack):
        return [self.tool, "bundle", "install", bundle, "--store", self.root, "--replace", *["--unpack"] * unpack]

    def expect(self, ok, what):
        if not ok:
            raise AssertionError(f"{what}; the store is kept in {self.root}")

    def prepare(self):
        """Nothing there, something, or the other version of the manifest."""
        kind = self.random.randrange(3)
        if kind == 0:
            shutil.rmtree(self.root, ignore_errors=True)
        for digest in self.random.sample(sorted(self.release.bytes), self.random.randrange(1, KERNELS)):
            self.store.path(digest).unlink(missing_ok=True)
        if kind == 1:
            shutil.rmtree(self.root / "manifests", ignore_errors=True)
        if self.random.random() < 0.7:
            shutil.rmtree(self.root / "bundles", ignore_errors=True)
        return self.manifest.read_text() if self.manifest.exists() else None

    def look(self, before, text):
        """What a reader finds after a kill."""
        self.expect(not (bad := self.store.wrong()), f"wrong bytes in {bad}")
        self.figures["temporary"] += len(self.store.temporary())
        missing = self.store.missing()
        self.figures["incomplete"] += bool(missing)
        if not self.manifest.exists():
            self.expect(before is None, "a manifest vanished")
            self.figures["unseen"] += 1
            return
        found = self.manifest.read_text()
        self.expect(found in (before, text), "a manifest that is neither the old nor the new one")
        if found == text and before != text:
            self.expect(not missing, f"the manifest came before {len(missing)} kernels")
            self.figures["replaced"] += before is not None
        self.expect(self.manifest.with_suffix(".json.minisig").exists(), "a manifest without its signature")
        served = subprocess.run([self.tool, "fetch", "--offline", "-m", self.manifest, "--store", self.root, "--all", "-q",
                                 "--source", self.root], capture_output=True, text=True, check=False)
        self.expect((served.returncode == 0) == (not missing), f"fetch --offline: {served.returncode} {served.stderr}")

    def one_round(self):
        bundle, text, signature = self.random.choice(self.bundles)
        before = self.prepare()
        unpack = self.random.random() < 0.5
        processes = [subprocess.Popen(self.command(bundle, unpack), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                     for _ in range(self.random.choice((1, 1, 2)))]
        started = time.monotonic()
        time.sleep(self.random.random() * self.took)
        for process in processes:
            process.kill()
        for process in processes:
            self.figures["kills" if process.wait() == -9 else "survived"] += 1
        self.look(before, text)
        started = time.monotonic()
        again = subprocess.run(self.command(bundle, unpack), capture_output=True, text=True, check=False)
        self.took = 0.7 * self.took + 0.3 * (time.monotonic() - started)
        self.expect(again.returncode == 0, f"install after a kill ends with {again.returncode}: {again.stderr}")
        self.expect(not (left := self.store.temporary()), f"left {left}")
        self.expect(not self.store.wrong() and not self.store.missing(), "not complete after the second run")
        self.expect(not unpack or not self.store.no_entries(), "not unpacked after the second run")
        self.figures["unpacked"] += unpack
        self.expect(self.manifest.read_text() == text, "another manifest")
        self.expect(self.manifest.with_suffix(".json.minisig").read_text() == signature, "another signature")

    def measure(self):
        """How long an install takes is learnt on the way."""

    def all_kills(self):
        return self.figures["kills"]

    def report(self, seconds):
        print(", ".join(f"{name} {count}" for name, count in self.figures.items()) + f"; {seconds:.0f} s, 0 violations")

    def end(self, keep):
        if not keep:
            shutil.rmtree(self.folder)


sys.exit(killing.run(Kills, 300))
