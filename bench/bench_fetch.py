#!/usr/bin/env python3
"""Fetching beside curl: a served tree, warm runs, a wheel by ranges, and many processes at once.

  bench_fetch.py tree   TOOL TREE MANIFEST [ROUNDS]   TREE: the unpacked wheel of the manifest
  bench_fetch.py peer   TOOL TREE MANIFEST FLASHINFER_PYTHON_WHEEL [ROUNDS [PYTHON]]
  bench_fetch.py wheel  TOOL WHEEL MANIFEST
  bench_fetch.py many   TOOL SOURCE_DIR [PROCESSES]

tree   all files of the manifest from an nginx on this machine: `cubist fetch --all` (fetched, hashed,
       stored durably) against `curl -Z --parallel-max 16` writing the same files with neither hash nor
       sync, in turn, medians; then the same fetch again, which must make no request and write nothing.
peer   the same files and server, `cubist fetch --all` against the downloader of a published
       flashinfer-python with the same number of connections (flashinfer_download.py), in turn, medians.
       PYTHON: one that has requests, filelock and tqdm.
wheel  kernels out of a wheel behind nginx: requests once its directory is remembered.
many   processes that want the same 100 missing files from a server that gives out bytes at a pace of its
       own, whoever asks and over however many connections: all bodies together take 5 s. Bodies served, and
       the time of all against the time of one alone.
"""
import http.server
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests/fault"))
from made_release import Release  # noqa: E402
from nginx import Nginx  # noqa: E402

CONNECTIONS = 16
PACED_SECONDS = 5


def timed(command):
    begun = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr[-1000:]}")
    return time.monotonic() - begun, done.stdout


def snapshot(folder):
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in pathlib.Path(folder).rglob("*")}


class Served:
    """The files of a manifest, behind nginx, and a folder for those who fetch them."""

    def __init__(self, tree, manifest):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-bench-"))
        self.nginx = Nginx(self.folder / "nginx", tree)
        self.manifest = manifest
        self.kernels = [dict(k, path=k.get("path", k["name"] + ".cubin"))
                        for pack in json.loads(pathlib.Path(manifest).read_text())["packs"] for k in pack["kernels"]]
        sample = next(pathlib.Path(tree).rglob(self.kernels[0]["path"].split("/")[-1]))
        self.url = f"{self.nginx.url}/{str(sample.relative_to(tree))[:-len(self.kernels[0]['path'])]}"
        self.store = self.folder / "store"

    def fetch(self, tool):
        return [tool, "fetch", "-m", self.manifest, "--all", "--store", self.store, "--source", self.url,
                "--parallel", CONNECTIONS]

    def in_turn(self, tool, peer_name, peer, peer_folder, rounds):
        """Both, each into an empty folder, as often as asked; prints the medians."""
        ours, theirs = [], []
        for _ in range(rounds):
            shutil.rmtree(peer_folder, ignore_errors=True)
            shutil.rmtree(self.store, ignore_errors=True)
            os.sync()
            theirs.append(timed(peer)[0])
            os.sync()
            ours.append(timed(self.fetch(tool))[0])
        size, our, their = sum(k["size"] for k in self.kernels), statistics.median(ours), statistics.median(theirs)
        print(f"{len(self.kernels)} files, {size / 1e9:.2f} GB, {CONNECTIONS} connections, {rounds} rounds, load "
              f"{os.getloadavg()[0]:.1f}: cubist {our:.2f} s, {peer_name} {their:.2f} s, ratio {our / their:.2f}",
              flush=True)

    def end(self):
        self.nginx.end()
        shutil.rmtree(self.folder)


def bench_peer(tool, tree, manifest, wheel, rounds, python):
    served = Served(tree, manifest)
    listing = served.folder / "list"
    listing.write_text("".join(f"{k['sha256']} {k['path']}\n" for k in served.kernels))
    folder = served.folder / "peer"
    served.in_turn(tool, pathlib.Path(wheel).name,
                   [python, pathlib.Path(__file__).with_name("flashinfer_download.py"), wheel, served.url, folder,
                    listing, CONNECTIONS], folder, rounds)
    fetched = sum(1 for path in folder.rglob("*.cubin"))
    print(f"the peer left {fetched} files")
    served.end()


def bench_tree(tool, tree, manifest, rounds):
    served = Served(tree, manifest)
    config = served.folder / "curl.conf"
    config.write_text("".join(f'url = "{served.url}{k["path"]}"\noutput = "{served.folder}/curl/{k["path"]}"\n'
                              for k in served.kernels))
    served.in_turn(tool, "curl", ["curl", "-s", "-f", "-Z", "--parallel-max", CONNECTIONS, "--create-dirs", "-K",
                                  config], served.folder / "curl", rounds)
    store, nginx, fetch = served.store, served.nginx, served.fetch(tool)
    before, asked = snapshot(store), len(nginx.requests())
    warm = [timed(fetch)[0] for _ in range(max(3, rounds))]
    print(f"warm run: {statistics.median(warm):.2f} s, {len(nginx.requests()) - asked} requests, "
          f"{sum(before.get(k) != v for k, v in snapshot(store).items())} files written")
    served.end()


def bench_wheel(tool, wheel, manifest):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-bench-"))
    nginx = Nginx(folder / "nginx", pathlib.Path(wheel).parent)
    names = [k["name"] for pack in json.loads(pathlib.Path(manifest).read_text())["packs"] for k in pack["kernels"]]
    for what, name in (("first kernel", names[0]), ("another, directory remembered", names[len(names) // 2]),
                       ("another", names[-1])):
        asked = len(nginx.requests())
        took, _ = timed([tool, "fetch", "-m", manifest, "--kernel", name, "--store", folder / "store",
                         "--source", f"{nginx.url}/{pathlib.Path(wheel).name}"])
        lines = nginx.requests()[asked:]
        print(f"{what}: {len(lines)} requests, {sum(int(line.split()[-1]) for line in lines)} bytes, {took:.2f} s")
    nginx.end()
    shutil.rmtree(folder)


class Pace:
    """Gives out so many bytes a second, to all who ask together."""

    def __init__(self, bytes_per_second):
        self.rate, self.free_at, self.lock = bytes_per_second, 0.0, threading.Lock()

    def wait_for(self, count):
        with self.lock:
            self.free_at = max(self.free_at, time.monotonic()) + count / self.rate
            until = self.free_at
        time.sleep(max(0.0, until - time.monotonic()))


class Paced(http.server.BaseHTTPRequestHandler):
    """Whole files, their bytes at the server's pace."""
    protocol_version = "HTTP/1.1"
    root, pace, bodies, lock = "", None, [], threading.Lock()

    def log_message(self, *args):
        pass

    def do_GET(self):
        data = (pathlib.Path(self.root) / self.path.lstrip("/")).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for begin in range(0, len(data), 4096):
            part = data[begin:begin + 4096]
            self.pace.wait_for(len(part))
            self.wfile.write(part)
        with self.lock:
            self.bodies.append(self.path)


def bench_many(tool, source_dir, processes):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-bench-"))
    release = Release(source_dir, folder, 100)
    Paced.root = release.tree
    Paced.pace = Pace(sum(map(len, release.bytes.values())) / PACED_SECONDS)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Paced)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    manifest = release.write_manifest("m.json", {"type": "http", "location": f"http://127.0.0.1:{server.server_port}"})
    took = {}
    for count in (1, processes):
        Paced.bodies.clear()
        command = [tool, "fetch", "-m", manifest, "--all", "--store", folder / f"store{count}", "--parallel", "8"]
        begun = time.monotonic()
        running = [subprocess.Popen([str(p) for p in command], stdout=subprocess.DEVNULL) for _ in range(count)]
        failed = sum(process.wait() != 0 for process in running)
        took[count] = time.monotonic() - begun
        print(f"{count} processes: {took[count]:.2f} s, {len(Paced.bodies)} bodies of {len(release.bytes)} files, "
              f"{failed} failed")
    print(f"ratio {took[processes] / took[1]:.2f}")
    server.shutdown()
    shutil.rmtree(folder)


def main():
    kind, tool, what, *rest = sys.argv[1:]
    if kind == "tree":
        bench_tree(tool, what, rest[0], int(rest[1]) if len(rest) > 1 else 3)
    elif kind == "peer":
        bench_peer(tool, what, rest[0], rest[1], int(rest[2]) if len(rest) > 2 else 3,
                   rest[3] if len(rest) > 3 else sys.executable)
    elif kind == "wheel":
        bench_wheel(tool, what, rest[0])
    else:
        bench_many(tool, what, int(rest[0]) if rest else 64)


main()
