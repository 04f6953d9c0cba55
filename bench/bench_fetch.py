#!/usr/bin/env python3
"""Fetching beside curl: a served tree, warm runs, a wheel by ranges, and many processes at once.

  bench_fetch.py tree   TOOL TREE MANIFEST [ROUNDS]   TREE: the unpacked wheel of the manifest
  bench_fetch.py wheel  TOOL WHEEL MANIFEST
  bench_fetch.py many   TOOL SOURCE_DIR [PROCESSES]

tree   all files of the manifest from an nginx on this machine: `cubist fetch --all` (fetched, hashed,
       stored durably) against `curl -Z --parallel-max 16` writing the same files with neither hash nor
       sync, in turn, medians; then the same fetch again, which must make no request and write nothing.
wheel  kernels out of a wheel behind nginx: requests once its directory is remembered.
many   processes that want the same 100 missing files from a server that paces its bodies to 5 s for one
       process: bodies served, and the time of all against the time of one alone.
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


def timed(command):
    begun = time.monotonic()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr[-1000:]}")
    return time.monotonic() - begun, done.stdout


def snapshot(folder):
    return {path: (path.lstat().st_mtime_ns, path.lstat().st_ctime_ns) for path in pathlib.Path(folder).rglob("*")}


def bench_tree(tool, tree, manifest, rounds):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-bench-"))
    nginx = Nginx(folder / "nginx", tree)
    kernels = [dict(k, path=k.get("path", k["name"] + ".cubin"))
               for pack in json.loads(pathlib.Path(manifest).read_text())["packs"] for k in pack["kernels"]]
    sample = next(pathlib.Path(tree).rglob(kernels[0]["path"].split("/")[-1]))
    prefix = str(sample.relative_to(tree))[:-len(kernels[0]["path"])]
    config = folder / "curl.conf"
    config.write_text("".join(f'url = "{nginx.url}/{prefix}{k["path"]}"\noutput = "{folder}/curl/{k["path"]}"\n'
                              for k in kernels))
    store = folder / "store"
    fetch = [tool, "fetch", "-m", manifest, "--all", "--store", store, "--source", f"{nginx.url}/{prefix}",
             "--parallel", CONNECTIONS]
    curl = ["curl", "-s", "-f", "-Z", "--parallel-max", CONNECTIONS, "--create-dirs", "-K", config]
    ours, theirs = [], []
    for _ in range(rounds):
        shutil.rmtree(folder / "curl", ignore_errors=True)
        shutil.rmtree(store, ignore_errors=True)
        os.sync()
        theirs.append(timed(curl)[0])
        os.sync()
        ours.append(timed(fetch)[0])
    size = sum(k["size"] for k in kernels)
    print(f"{len(kernels)} files, {size / 1e9:.2f} GB, {rounds} rounds: cubist {statistics.median(ours):.2f} s, "
          f"curl {statistics.median(theirs):.2f} s, ratio {statistics.median(ours) / statistics.median(theirs):.2f}")
    before, asked = snapshot(store), len(nginx.requests())
    warm = [timed(fetch)[0] for _ in range(max(3, rounds))]
    print(f"warm run: {statistics.median(warm):.2f} s, {len(nginx.requests()) - asked} requests, "
          f"{sum(before.get(k) != v for k, v in snapshot(store).items())} files written")
    nginx.end()
    shutil.rmtree(folder)


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


class Paced(http.server.BaseHTTPRequestHandler):
    """Whole files, each body spread over `seconds`."""
    protocol_version = "HTTP/1.1"
    root, seconds, bodies, lock = "", 0.4, [], threading.Lock()

    def log_message(self, *args):
        pass

    def do_GET(self):
        data = (pathlib.Path(self.root) / self.path.lstrip("/")).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for i in range(4):
            time.sleep(self.seconds / 4)
            self.wfile.write(data[len(data) * i // 4:len(data) * (i + 1) // 4])
        with self.lock:
            self.bodies.append(self.path)


def bench_many(tool, source_dir, processes):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cubist-bench-"))
    release = Release(source_dir, folder, 100)
    Paced.root = release.tree
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
    elif kind == "wheel":
        bench_wheel(tool, what, rest[0])
    else:
        bench_many(tool, what, int(rest[0]) if rest else 64)


main()
