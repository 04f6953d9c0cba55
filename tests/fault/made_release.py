"""A small release for the matrices: kernels of random bytes in a tree, and a manifest for them."""
import copy
import hashlib
import json
import os
import pathlib
import random
import zipfile

PREFIX = "pack/cubins/"


class Release:
    def __init__(self, source_dir, folder, kernels, seed=1, sizes=(2_000, 30_000)):
        self.folder = pathlib.Path(folder)
        self.tree = self.folder / "tree"
        self.bytes = {}
        rng = random.Random(seed)
        shipped = json.loads((pathlib.Path(source_dir) / "manifests/cubist-decode.json").read_text())
        pack = shipped["packs"][0]
        model = pack["kernels"][0]
        pack["kernels"] = []
        (self.tree / PREFIX).mkdir(parents=True)
        for i in range(kernels):
            data = b"\x7fELF" + rng.randbytes(rng.randrange(*sizes))
            digest = hashlib.sha256(data).hexdigest()
            record = copy.deepcopy(model)
            record.update(name=f"kernel_{i:05}", path=f"kernel_{i:05}.cubin", sha256=digest,
                          size=len(data))
            pack["kernels"].append(record)
            self.bytes[digest] = data
            (self.tree / PREFIX / record["path"]).write_bytes(data)
        shipped["packs"] = [pack]
        self.document = shipped

    def write_manifest(self, name, source):
        """source: {"type": "http", "location": URL} or of another kind; returns the path."""
        self.document["packs"][0]["sources"] = [dict(source, prefix=PREFIX)]
        path = self.folder / name
        path.write_text(json.dumps(self.document))
        return path


class StoreView:
    """A store as it lies on disk, judged without the product's own code."""

    def __init__(self, root, release):
        self.root, self.release = pathlib.Path(root), release

    def path(self, digest):
        return self.root / "sha256" / digest[:2] / f"{digest}.cubin"

    def entries(self):
        found = {}
        for path in sorted(self.root.glob("sha256/*/*")):
            found[path.name] = path.read_bytes()
        return found

    def bundled(self):
        """(bundle, digest, bytes) of every kernel in a bundle; a file that is no zip fails the test."""
        for path in sorted(self.root.glob("bundles/*")):
            with zipfile.ZipFile(path) as bundle:
                for name in bundle.namelist():
                    if name.startswith("sha256/"):
                        yield path, pathlib.PurePath(name).stem, bundle.read(name)

    def temporary(self):
        folder = self.root / "tmp"
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def wrong(self, allowed=None):
        """Names of entries whose bytes are not what their name says; `allowed`: name -> bytes that
        the matrix itself put there."""
        bad = []
        for name, data in self.entries().items():
            if name == hashlib.sha256(data).hexdigest() + ".cubin":
                continue
            if allowed is None or allowed.get(name) != data:
                bad.append(name)
        return bad + [f"{path}:{digest}" for path, digest, data in self.bundled() if digest != hashlib.sha256(data).hexdigest()]

    def no_entries(self):
        return [digest for digest in self.release.bytes if not self.path(digest).is_file()]

    def missing(self):
        bundled = {digest for _, digest, _ in self.bundled()}
        return [digest for digest in self.no_entries() if digest not in bundled]
