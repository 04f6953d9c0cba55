#!/usr/bin/env python3
"""`cubist push`, `pull` and `fetch --source oci://` with Debian's docker-registry and skopeo.

    oci_test.py TOOL
"""
import hashlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cli import Tool, check, check_fails, manifest  # noqa: E402
from oci_registry import PASSWORD, USER, DockerRegistry, MadeRegistry, TokenServer, installed, plain_base64  # noqa: E402

KERNELS = 40
LAYER = 20_000  # bytes: some ten shards


def make_bundle(tool, folder, name="made", seed=1):
    """A bundle of kernels of noise and zeros; its manifest, and the kernels by name."""
    rng = random.Random(seed)
    kernels = {f"{name}_{i:02}": b"\x7fELF" + rng.randbytes(rng.randrange(500, 6000)) + bytes(rng.randrange(3000))
               for i in range(KERNELS)}
    tree = folder / f"{name}-tree"
    tree.mkdir()
    for kernel, data in kernels.items():
        (tree / f"{kernel}.cubin").write_bytes(data)
    document = folder / f"{name}.json"
    document.write_text(manifest(*kernels, name=name, bytes_of=kernels))
    file = folder / f"{name}.zip"
    run = tool("bundle", "create", "--manifest", document, "--all", "--source", tree, "-o", file,
               CUBIST_STORE=f"{folder}/{name}-store")
    check(run.code == 0, "a bundle to push", run)
    return file, document, kernels


def skopeo(*arguments):
    done = subprocess.run(["skopeo", *map(str, arguments)], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"skopeo {arguments[0]}: {done.stderr}")
    return done.stdout


def copy(source, target):
    skopeo("copy", "--src-tls-verify=false", "--dest-tls-verify=false", source, target)


def entries(store):
    """Kernels that lie in a store, in bundles or as entries."""
    found = {path.stem: path.read_bytes() for path in pathlib.Path(store).glob("sha256/*/*.cubin")}
    for path in pathlib.Path(store).glob("bundles/*.zip"):
        with zipfile.ZipFile(path) as bundle:
            found.update({pathlib.PurePath(name).stem: bundle.read(name) for name in bundle.namelist() if name.startswith("sha256/")})
    return found


def check_store(store, kernels, what):
    found = entries(store)
    wanted = {hashlib.sha256(data).hexdigest(): data for data in kernels.values()}
    check(found == wanted, f"{what}: the store holds exactly the kernels ({len(found)} of {len(wanted)})")
    check(not list(pathlib.Path(store).glob("tmp/*")), f"{what}: nothing is left in tmp/")


def check_push(tool, folder, registry, file):
    place = f"oci://{registry.host}/team/kernels:v1"
    first = tool("push", file, place, "--layer-bytes", LAYER, "--json")
    check(first.code == 0, "a push", first)
    report = first.json()
    check(report["sent_bytes"] > file.stat().st_size and report["blobs_present"] == 0, "everything is sent", first)
    raw = skopeo("inspect", "--raw", "--tls-verify=false", f"docker://{registry.host}/team/kernels:v1").encode()
    check("sha256:" + hashlib.sha256(raw).hexdigest() == report["digest"], "the digest is the manifest's")
    layers = json.loads(raw)["layers"]
    check(len(layers) > 6 and len(raw) < 8000, f"{len(layers)} layers, a small manifest")
    again = tool("push", file, place, "--layer-bytes", LAYER, "--json").json()
    check(again["sent_bytes"] == 0 and again["blobs_present"] == again["blobs"], "a second push sends nothing")
    check(again["digest"] == report["digest"], "the same file, the same digest")
    mounted = tool("push", file, f"oci://{registry.host}/other:v1", "--layer-bytes", LAYER, "--mount", "team/kernels",
                   "--json").json()
    check(mounted["blobs_mounted"] == mounted["blobs"] and mounted["sent_bytes"] == 0, "another repository mounts")
    check_fails(tool("push", file, f"oci://{registry.host}/team/kernels@{report['digest']}"), 2, "needs a tag")
    check_fails(tool("push", __file__, place), 4, "zip")
    return report["digest"]


def check_pull(tool, folder, registry, file, digest, kernels):
    place = f"oci://{registry.host}/team/kernels"
    for what in (":v1", f"@{digest}", f":v1@{digest}"):
        (folder / "back.zip").unlink(missing_ok=True)
        run = tool("pull", place + what, "-o", folder / "back.zip")
        check(run.code == 0 and (folder / "back.zip").read_bytes() == file.read_bytes(), f"{what} comes back", run)
        tag = what.split("@")[0]
        check(run.out.splitlines()[0] == f"{place}{tag}@{digest}", "a reference is printed that pull takes", run)
    key = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
    refused = tool("pull", f"{place}:v1", "--store", folder / "refused", "--trusted-key", key,
                   "--manifest-signatures", "refuse")
    check_fails(refused, 4, f"{place}:v1:manifests/made.json", "is not signed")
    unchecked = tool("pull", f"{place}:v1", "-o", folder / "unchecked.zip", "--trusted-key", key,
                     "--manifest-signatures", "refuse")
    check_fails(unchecked, 4, "is not signed")
    check(not list(folder.glob("unchecked.zip*")), "a file that is not trusted gets no name")
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    check_fails(tool("pull", f"{place}:v1", "--store", folder / "open", CUBIST_FOREIGN_STORE="refuse"), 4,
                "can be written by everybody")
    check("resume" not in refused.err, "the copy, which is gone, is not named", refused)
    run = tool("pull", f"{place}:v1", "-o", folder / "back.zip", "--parallel", 1, "--quiet")
    check(run.code == 0 and not run.out, "over an older file, quietly", run)
    check(not list(folder.glob("back.zip.*")), "nothing is left beside it")
    for kind, make in (("a folder", lambda path: path.mkdir()), ("a symbolic link", lambda path: path.symlink_to("/nowhere"))):
        blocked = folder / f"blocked-{kind.split()[-1]}"
        resume = blocked / "tmp" / f"{digest.split(':')[1]}.resume"
        resume.parent.mkdir(parents=True)
        make(resume)
        check_fails(tool("pull", f"{place}:v1", "--store", blocked), 6, f"'{resume}' is {kind}", "an unfinished pull is kept in",
                    "move or remove it")
    store = folder / "pulled"
    run = tool("pull", f"{place}:v1", "--store", store, "--json")
    check(run.code == 0 and run.json()["install"]["installed"] == KERNELS, "into a store", run)
    check_store(store, kernels, "pull")
    kept = pathlib.Path(run.json()["install"]["bundle"])
    check(kept.read_bytes() == file.read_bytes() and not (store / "sha256").exists(), "as the file that was pushed", run)
    check(kept.stat().st_mode & 0o777 == 0o444, f"read-only: {kept.stat().st_mode:o}")
    check(tool("push", kept, f"{place}:again", "--layer-bytes", LAYER, "--json").json()["digest"] == digest, "which can be pushed")
    again = tool("pull", f"{place}:v1", "--store", store, "--json").json()
    check(again["layers_wanted"] == 2 and again["install"]["present"] == KERNELS, "what is there is not asked for")
    other = folder / "other.zip"
    document = folder / "other.json"
    document.write_text(manifest(*kernels, name="other", bytes_of=kernels))
    run = tool("bundle", "create", "--manifest", document, "--all", "--offline", "-o", other, CUBIST_STORE=store)
    check(run.code == 0 and tool("push", other, f"{place}:other").code == 0, "another bundle of the same kernels", run)
    os.utime(kept, (1_600_000_000, 1_600_000_000))
    run = tool("pull", f"{place}:other", "--store", store, "--json")
    check(not run.json()["install"]["bundle"], "no second file of them", run)
    check(kept.stat().st_mtime > 1_700_000_000, "but the one that serves them counts as used, for gc")
    status = tool("fetch", "--manifest", "made", "--all", "--offline", CUBIST_STORE=store,
                  CUBIST_MANIFESTS=store / "manifests")
    check(status.code == 0, "the manifest came too, and all is there offline", status)
    kept.chmod(0o644)
    with kept.open("r+b") as kernel_bytes:
        kernel_bytes.seek(kept.stat().st_size // 2)
        kernel_bytes.write(b"rotten" * 10)
    run = tool("pull", f"{place}:v1", "--store", store)
    check(run.code == 0 and kept.read_bytes() == file.read_bytes(), "a bundle that rotted is brought again", run)
    liar = folder / "liar.zip"
    data = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as bundle:
        kernel = next(info for info in bundle.infolist() if info.filename.startswith("sha256/"))
    data[kernel.header_offset + 30 + len(kernel.filename) + kernel.compress_size // 2] ^= 1
    liar.write_bytes(data)
    check(tool("push", liar, f"{place}:liar", "--layer-bytes", LAYER).code == 0, "a bundle with a wrong kernel can be pushed")
    run = tool("pull", f"{place}:liar", "--store", store)
    check_fails(run, 4, "was left as it is")
    check(kept.read_bytes() == file.read_bytes(), "and does not take the place of one that is right", run)
    run = tool("pull", f"{place}:v1", "--store", store, "--unpack", "--json")
    check(run.code == 0 and run.json()["install"]["installed"] == KERNELS, "unpacked beside it", run)
    kept.unlink()
    check_store(store, kernels, "unpacked")
    again = tool("pull", f"{place}:v1", "--store", store, "--json").json()
    check(again["install"]["present"] == KERNELS and not kept.exists(), "no bundle where every kernel is there")
    victim = next(store.glob("sha256/*/*.cubin"))
    victim.chmod(0o644)
    victim.write_bytes(b"x" * victim.stat().st_size)
    run = tool("pull", f"{place}:v1", "--store", store, "--unpack")
    check(run.code == 0, "a broken entry of the right size is found out", run)
    check_store(store, kernels, "repair by pull")


def check_copies(tool, folder, registry, second, file, digest, kernels):
    """What we push skopeo copies; what skopeo copied we pull."""
    source = f"docker://{registry.host}/team/kernels:v1"
    copy(source, f"dir:{folder}/dir")
    copy(source, f"oci:{folder}/layout:v1")
    copy(source, f"docker://{second.host}/a:direct")
    copy(f"dir:{folder}/dir", f"docker://{second.host}/b:dir")
    copy(f"oci:{folder}/layout:v1", f"docker://{second.host}/c:layout")
    for place in ("a:direct", "b:dir", "c:layout"):
        target = folder / "copied.zip"
        target.unlink(missing_ok=True)
        run = tool("pull", f"oci://{second.host}/{place}", "-o", target, "--json")
        check(run.code == 0 and target.read_bytes() == file.read_bytes(), f"{place} is the same file", run)
        check(run.json()["digest"] == digest, f"{place} has the same digest")
    run = tool("pull", f"oci://{second.host}/a:direct", "--store", folder / "from-copy")
    check(run.code == 0, "a store from a copy", run)
    check_store(folder / "from-copy", kernels, "copied")


def check_source(tool, folder, registry, document, kernels):
    store = folder / "lazy"
    source = f"oci://{registry.host}/team/kernels:v1"
    asked = len(registry.requests())
    names = list(kernels)[5], list(kernels)[30]
    run = tool("fetch", "--manifest", document, "--kernel", names[0], "--kernel", names[1], "--source", source, "--store",
               store, "--json")
    check(run.code == 0 and run.json()["fetched"] == 2, "two kernels by range", run)
    check(run.json()["received_bytes"] < 25_000, f"{run.json()['received_bytes']} bytes, no whole layer")
    check(sum(" 206 " in line for line in registry.requests()[asked:]) == 3, "a range for each, and one to ask")
    check_store(store, {name: kernels[name] for name in names}, "lazy")
    run = tool("fetch", "--manifest", document, "--all", "--source", source, "--store", store, "--json")
    check(run.code == 0 and run.json()["fetched"] == KERNELS - 2, "the others", run)
    check_store(store, kernels, "all by range")
    check_fails(tool("fetch", "--manifest", document, "--all", "--source", source, "--store", folder / "o", "--offline"), 7)
    run = tool("fetch", "--manifest", document, "--all", "--source", f"oci://{registry.host}/none:v1", "--store",
               folder / "o", "--tries", 1)
    check_fails(run, 5, "404")


def login(folder, host, user=USER, password=PASSWORD, **more):
    file = folder / "auth.json"
    entry = {"auth": plain_base64(f"{user}:{password}".encode()), **more}
    file.write_text(json.dumps({"auths": {host: entry}}))
    return {"REGISTRY_AUTH_FILE": str(file), "CUBIST_LOG_LEVEL": "debug"}


def check_secret(run, *more):
    for word in (PASSWORD, plain_base64(f"{USER}:{PASSWORD}".encode()), "Bearer", *more):
        check(word not in run.out + run.err, f"'{word}' is not shown", run)


def check_basic(tool, folder, registry, file):
    place = f"oci://{registry.host}/private/k:1"
    nobody = {"REGISTRY_AUTH_FILE": str(folder / "empty.json"), "HOME": str(folder)}
    (folder / "empty.json").write_text("{}")
    check_fails(tool("push", file, place, **nobody), 5, "no", registry.host, "login", "REGISTRY_AUTH_FILE")
    wrong = tool("push", file, place, **login(folder, registry.host, password="wrong"))
    check(wrong.code == 5 and "refuses the user and password" in wrong.err, "a wrong password", wrong)
    check("wrong" not in wrong.err.replace("wrong-", ""), "is not shown", wrong)
    known = login(folder, registry.host)
    run = tool("push", file, place, **known)
    check(run.code == 0, "with the right one", run)
    check_secret(run)
    run = tool("pull", place, "-o", folder / "basic.zip", **known)
    check(run.code == 0 and (folder / "basic.zip").read_bytes() == file.read_bytes(), "and back", run)
    check_secret(run)


def check_tokens(tool, folder, registry, server, file, document):
    place = f"oci://{registry.host}/private/k:1"
    known = login(folder, registry.host)
    run = tool("push", file, place, "--layer-bytes", LAYER, **known)
    check(run.code == 0, "a push with a token", run)
    check_secret(run)
    check(len(server.asked) == 1 and "pull%2Cpush" in server.asked[0][0], f"one token does for all: {server.asked}")
    server.asked.clear()
    identity = login(folder, registry.host, user="x", password="", identitytoken="identity")
    run = tool("pull", place, "-o", folder / "token.zip", **identity)
    check(run.code == 0 and (folder / "token.zip").read_bytes() == file.read_bytes(), "an identity token", run)
    check([method for _, method in server.asked] == ["POST"], "is exchanged by POST")
    check_secret(run, "identity")
    run = tool("pull", place, "-o", folder / "token.zip", **login(folder, registry.host, password="wrong"))
    check_fails(tool("pull", place, "-o", folder / "x.zip", **{**known, "REGISTRY_AUTH_FILE": str(folder / "empty.json"),
                                                             "CUBIST_LOG_LEVEL": "warning"}), 5, "gives no token", "login")
    check(run.code == 5 and "gives no token" in run.err and "log in again" in run.err, "a wrong password", run)
    for begin, end, words in ((-7200, -3600, "it expired at"), (3600, 7200, "it is valid only from")):
        server.begin, server.end_of_life = begin, end
        server.asked.clear()
        run = tool("pull", place, "-o", folder / "x.zip", **{**login(folder, registry.host), "CUBIST_LOG_LEVEL": "warning"})
        check_fails(run, 5, words, "clock")
        check(len(server.asked) == 2, f"a new token is asked for once: {len(server.asked)}")
    server.begin, server.end_of_life, server.lifetime = -10, 300, 1
    server.asked.clear()
    run = tool("fetch", "--manifest", document, "--all", "--source", place, "--store", folder / "short", "--parallel", 2,
               **login(folder, registry.host))
    check(run.code == 0, "tokens that live a second are replaced in time", run)
    check(not (folder / "x.zip").exists(), "nothing was written")


def check_stopped(tool, folder, file):
    """kill -9 in the middle of a pull: the next one asks for the rest alone."""
    made = MadeRegistry()
    place = f"oci://{made.host}/k:1"
    rng = random.Random(3)
    big = {f"big_{i}": b"\x7fELF" + rng.randbytes(300_000) for i in range(4)}
    tree = folder / "big-tree"
    tree.mkdir()
    for kernel, data in big.items():
        (tree / f"{kernel}.cubin").write_bytes(data)
    (folder / "big.json").write_text(manifest(*big, name="big", bytes_of=big))
    run = tool("bundle", "create", "--manifest", folder / "big.json", "--all", "--source", tree, "-o", folder / "big.zip")
    check(run.code == 0, "a bundle", run)
    check(tool("push", folder / "big.zip", place).code == 0, "a push to the registry made here")
    shard = max(made.blobs, key=lambda digest: len(made.blobs[digest]))

    def stall(handler):
        if handler.headers.get("Range"):
            return False
        data = made.blobs[shard]
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[:900_000])
        time.sleep(30)
        return True

    made.behaviours.append((shard, stall))
    for kind, end in (("store", signal.SIGKILL), ("file", signal.SIGKILL), ("file", signal.SIGTERM)):
        target = ["--store", folder / "stopped"] if kind == "store" else ["-o", folder / "stopped.zip"]
        for old in folder.glob("stopped.zip*"):
            old.unlink()
        process = subprocess.Popen([tool.program, "pull", place, *map(str, target)], env=tool.environment,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        parts = folder.glob("stopped/tmp/*.resume" if kind == "store" else "stopped.zip.*.part")
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            parts = list(folder.glob("stopped/tmp/*.resume" if kind == "store" else "stopped.zip.*.part"))
            if parts and parts[0].stat().st_blocks * 512 > 700_000:
                break
            time.sleep(0.02)
        process.send_signal(end)
        check(process.wait() == (-9 if end == signal.SIGKILL else 143), "it was stopped")
        made.asked.clear()
        run = tool("pull", place, *target)
        check(run.code == 0, "the same command goes on", run)
        ranges = [asked[2] for asked in made.asked if shard in asked[1]]
        check(len(ranges) == 1 and ranges[0] and int(re.match(r"bytes=(\d+)-", ranges[0])[1]) > 500_000,
              f"from where it was: {ranges}")
    check_store(folder / "stopped", big, "stopped")
    check((folder / "stopped.zip").read_bytes() == (folder / "big.zip").read_bytes(), "the file is whole")
    made.end()


def main():
    if not installed():
        print("no docker-registry or no skopeo here: skipped")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool = Tool(sys.argv[1], folder)
        file, document, kernels = make_bundle(tool, folder)
        first, second = DockerRegistry(folder / "one"), DockerRegistry(folder / "two")
        digest = check_push(tool, folder, first, file)
        check_pull(tool, folder, first, file, digest, kernels)
        check_copies(tool, folder, first, second, file, digest, kernels)
        check_source(tool, folder, first, document, kernels)
        second.end()
        first.end()
        basic = DockerRegistry(folder / "basic", "basic")
        check_basic(tool, folder, basic, file)
        basic.end()
        server = TokenServer(folder / "tokens")
        private = DockerRegistry(folder / "private", server)
        check_tokens(tool, folder, private, server, file, document)
        private.end()
        server.end()
        check_stopped(tool, folder, file)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
