#!/usr/bin/env python3
"""What a registry may answer `cubist pull` and `fetch --source oci://` with: each a clear error, and nothing
written. Registry and answers are made here.

    oci_bad_test.py TOOL
"""
import copy
import hashlib
import http.server
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from cli import Tool, check, check_fails  # noqa: E402
from oci_registry import MadeRegistry, Server, sha256  # noqa: E402
from oci_test import KERNELS, LAYER, check_store, make_bundle  # noqa: E402


class Cases:
    def __init__(self, tool, folder):
        self.tool, self.folder = tool, folder
        self.file, self.document, self.kernels = make_bundle(tool, folder)
        self.registry = MadeRegistry()
        self.place = f"oci://{self.registry.host}/k:1"
        run = tool("push", self.file, self.place, "--layer-bytes", LAYER)
        check(run.code == 0, "a push", run)
        self.good = json.loads(self.registry.manifests["1"])
        self.count = 0

    def refused(self, what, code, *words, target=None):
        """Both ways of pulling end so, and write nothing."""
        before = sorted(self.folder.rglob("*"))
        for target in (["-o", self.folder / "out.zip"], ["--store", self.folder / "refused"]):
            run = self.tool("pull", self.place, *target, "--tries", 1, "--connect-timeout", 5)
            try:
                check_fails(run, code, *words)
            except SystemExit as problem:
                sys.exit(f"{what} ({target[0]}): {problem}")
        check(not list(self.folder.glob("refused/sha256/*/*")), f"{what}: no kernel")
        check(not list(self.folder.glob("refused/manifests/*")), f"{what}: no manifest")
        left = [path for path in sorted(self.folder.rglob("*")) if path not in before and path.is_file()]
        partial = [path for path in left if not path.name.endswith((".part", ".resume"))]
        check(not partial, f"{what}: nothing was written: {partial}")
        for path in left:
            path.unlink()
        self.registry.behaviours.clear()
        self.count += 1

    def manifest(self, change):
        document = copy.deepcopy(self.good)
        changed = change(document)
        text = changed if isinstance(changed, bytes) else json.dumps(document if changed is None else changed).encode()
        self.registry.manifests["1"] = text

    def whole(self):
        self.registry.manifests["1"] = json.dumps(self.good).encode()


def manifests(cases):
    def set_at(*path, value):
        def change(document):
            at = document
            for step in path[:-1]:
                at = at[step]
            at[path[-1]] = value
        return change

    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [{"digest": "x"}]}
    docker = {**index, "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json"}
    shard = cases.good["layers"][2]
    big = {f"note{i}": "x" * 1000 for i in range(300)}
    table = [
        ("an index", lambda _: index, "index of several manifests"),
        ("a manifest list", lambda _: docker, "index of several manifests"),
        ("an image of another kind", set_at("config", "mediaType", value="application/vnd.oci.image.config.v1+json"),
         "found an artifact of type"),
        ("another artifact", set_at("artifactType", value="application/vnd.example"), "found an artifact of type"),
        ("a docker manifest", set_at("mediaType", value="application/vnd.docker.distribution.manifest.v2+json"),
         "found a manifest of type"),
        ("a foreign layer", set_at("layers", 2, "mediaType", value="application/vnd.oci.image.layer.v1.tar+gzip"),
         "/layers/2/mediaType"),
        ("too few layers", set_at("layers", value=cases.good["layers"][:2]), "2 layers"),
        ("too many layers", set_at("layers", value=[shard] * 9000), "9000 layers"),
        ("a layer twice", lambda d: d["layers"].insert(2, shard), "config"),
        ("a layer of size 0", set_at("layers", 2, "size", value=0), "/layers/2/size"),
        ("a layer of negative size", set_at("layers", 2, "size", value=-5), "/layers/2/size"),
        ("a layer of endless size", set_at("layers", 2, "size", value=1 << 62), "/layers/2/size"),
        ("a layer larger than it is", set_at("layers", 2, "size", value=shard["size"] + 1), "config"),
        ("a digest that leads elsewhere", set_at("layers", 2, "digest", value="sha256:../../../../etc/passwd"),
         "/layers/2/digest"),
        ("a digest of another kind", set_at("layers", 2, "digest", value="sha512:" + "0" * 128), "/layers/2/digest"),
        ("huge annotations", set_at("annotations", value=big), "annotations of more than"),
        ("huge annotations of a layer", set_at("layers", 2, "annotations", value=big), "annotations of more than"),
        ("no JSON", lambda _: b"<html>", "not a JSON"),
        ("a key twice", lambda _: b'{"config":1,"config":2}', "twice"),
        ("nesting without end", lambda _: b"[" * 100_000, "nested"),
        ("an empty manifest", lambda _: b"", "JSON"),
    ]
    for what, change, words in table:
        cases.manifest(change)
        cases.refused(what, 4, words)
    cases.manifest(lambda d: json.dumps(d).encode() + b" " * (5 << 20))
    cases.refused("a manifest of 5 MiB", 4, "4194304")
    cases.whole()

    def says_otherwise(handler):
        handler.answer(200, cases.registry.manifests["1"], {"Docker-Content-Digest": "sha256:" + "1" * 64})
        return True

    cases.registry.behaviours.append(("/manifests/", says_otherwise))
    cases.refused("a digest that the registry makes up", 4, "sha256:1111")
    run = cases.tool("pull", cases.place.rsplit(":", 1)[0] + "@sha256:" + "2" * 64, "-o", cases.folder / "x.zip")
    check_fails(run, 5, "404")
    cases.registry.manifests["sha256:" + "2" * 64] = cases.registry.manifests["1"]
    run = cases.tool("pull", cases.place.rsplit(":", 1)[0] + "@sha256:" + "2" * 64, "-o", cases.folder / "x.zip")
    check_fails(run, 4, "the registry sent a manifest with digest")


def blobs(cases):
    good = cases.good
    shard, head, tail = good["layers"][2], good["layers"][0], good["layers"][-1]
    for what, blob in (("head", head), ("shard", shard), ("tail", tail), ("config", good["config"]),
                       ("index", good["layers"][1])):
        data = cases.registry.blobs[blob["digest"]]

        def flipped(handler, data=data):
            handler.send_data(bytes([data[0] ^ 1]) + data[1:])
            return True

        def truncated(handler, data=data):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data[:len(data) // 2])
            handler.close_connection = True
            return True

        def longer(handler, data=data):
            handler.answer(200, data + b"x")
            return True

        def missing(handler):
            handler.answer(404)
            return True

        for how, behave, code, words in (("one bit flipped", flipped, 4, blob["digest"]), ("cut short", truncated, 5, "bytes"),
                                         ("one byte longer", longer, 4, "expected"), ("missing", missing, 5, "404")):
            cases.registry.behaviours.append((blob["digest"], behave))
            cases.refused(f"{what} {how}", code, words)


def config_of_others(cases):
    """Config and index that fit their digests, but not the layers."""
    config = json.loads(cases.registry.blobs[cases.good["config"]["digest"]])
    index = json.loads(cases.registry.blobs[cases.good["layers"][1]["digest"]])

    def with_config(change):
        def apply(document):
            changed = {**config, **change}
            data = json.dumps(changed).encode()
            document["config"].update(digest=cases.registry.put(data), size=len(data))
        return apply

    def with_index(change):
        def apply(document):
            changed = copy.deepcopy(index)
            change(changed)
            data = json.dumps(changed).encode()
            document["layers"][1].update(digest=cases.registry.put(data), size=len(data))
            with_config({"index": sha256(data)})(document)
        return apply

    def swap(document):
        document["kernels"][3], document["kernels"][4] = document["kernels"][4], document["kernels"][3]

    for what, change, words in (
            ("another bundle's identity", with_config({"identity": "sha256:" + "3" * 64}), "the config describes"),
            ("another size of the file", with_config({"file_bytes": 5}), "/file_bytes"),
            ("another count of kernels", with_config({"kernels": KERNELS + 1}), "the index"),
            ("another index", with_config({"index": "sha256:" + "3" * 64}), "/index"),
            ("an index out of order", with_index(swap), "does not lie behind"),
            ("an offset beyond its shard", with_index(lambda d: d["kernels"][0].__setitem__(2, 1 << 30)), "does not lie"),
            ("an index of other shards", with_index(lambda d: d["shards"].reverse()), "not the shards")):
        cases.manifest(change)
        cases.refused(what, 4, words)
    cases.whole()


def kernels_of_others(cases):
    """An index whose digests are exchanged: what comes is not what the manifest names."""
    index = json.loads(cases.registry.blobs[cases.good["layers"][1]["digest"]])
    config = json.loads(cases.registry.blobs[cases.good["config"]["digest"]])
    row = index["kernels"][7]
    row[0] = row[0][:-1] + ("0" if row[0][-1] != "0" else "1")
    index["kernels"].sort()
    data = json.dumps(index).encode()
    document = copy.deepcopy(cases.good)
    document["layers"][1].update(digest=cases.registry.put(data), size=len(data))
    data = json.dumps({**config, "index": document["layers"][1]["digest"]}).encode()
    document["config"].update(digest=cases.registry.put(data), size=len(data))
    cases.registry.manifests["1"] = json.dumps(document).encode()
    run = cases.tool("fetch", "--manifest", cases.document, "--all", "--source", cases.place, "--store", cases.folder / "some",
                     "--json")
    check(run.code == 5 or run.code == 4 or run.code == 2, "a kernel that is not there fails", run)
    check(run.json()["fetched"] == KERNELS - 1, "the others come", run)
    wrong = {hashlib.sha256(path.read_bytes()).hexdigest() != path.stem for path in cases.folder.glob("some/sha256/*/*")}
    check(wrong == {False}, "no wrong byte in the store")
    cases.whole()


class Elsewhere(http.server.BaseHTTPRequestHandler):
    """An object store: it takes what it is asked, and must not be told who asks."""

    def do_GET(self):
        self.server.owner.asked.append(dict(self.headers))
        data = self.server.owner.data
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def redirects(cases):
    shard = cases.good["layers"][2]

    def to(address):
        def redirect(handler):
            handler.answer(307, headers={"Location": address})
            return True
        return redirect

    for what, address, words in (("another scheme", "ftp://127.0.0.1/x", "not an http"), ("a file", "file:///etc/passwd", "not an http"),
                                 ("itself", f"http://{cases.registry.host}/v2/k/blobs/{shard['digest']}", "redirects")):
        cases.registry.behaviours.append((shard["digest"], to(address)))
        cases.refused(f"a redirect to {what}", 5, words)
    other = Server(Elsewhere)
    other.asked, other.data = [], cases.registry.blobs[shard["digest"]]
    auth = cases.folder / "auth.json"
    auth.write_text(json.dumps({"auths": {cases.registry.host: {"username": "ada", "password": "hunter2"}}}))

    def asks_who(handler):
        if handler.headers.get("Authorization", "").startswith("Basic "):
            return False
        handler.answer(401, headers={"WWW-Authenticate": 'Basic realm="x"'})
        return True

    cases.registry.behaviours += [("/v2/", asks_who), (shard["digest"], to(f"http://{other.host}/object?signature=s3cret"))]
    run = cases.tool("pull", cases.place, "--store", cases.folder / "moved", REGISTRY_AUTH_FILE=auth, CUBIST_LOG_LEVEL="debug")
    check(run.code == 0, "a blob in an object store", run)
    check_store(cases.folder / "moved", cases.kernels, "redirected")
    check(other.asked and all("Authorization" not in headers for headers in other.asked), "the object store gets no password")
    check("hunter2" not in run.err and "s3cret" not in run.err, "nothing secret is shown", run)
    cases.registry.behaviours.clear()
    other.end()


def challenges(cases):
    """401 without end, and token servers that are none."""
    secure = "http://192.0.2.1/token"
    asked = cases.registry.asked

    def unauthorized(challenge):
        def answer(handler):
            handler.answer(401, headers={"WWW-Authenticate": challenge} if challenge else {})
            return True
        return answer

    def token(document):
        def answer(handler):
            handler.answer(200, document)
            return True
        return answer

    realm = f'Bearer realm="http://{cases.registry.host}/token",service="s"'
    auth = cases.folder / "auth.json"
    auth.write_text(json.dumps({"auths": {cases.registry.host: {"username": "ada", "password": "hunter2"}}}))
    cases.tool.environment["REGISTRY_AUTH_FILE"] = str(auth)
    for what, challenge, answer, words in (
            ("no challenge", None, None, "refuses access"),
            ("a challenge of another kind", "Negotiate", None, "refuses access"),
            ("basic without end", 'Basic realm="x"', None, "refuses the user and password"),
            ("tokens without end", realm, b'{"token":"abc"}', "refuses the tokens"),
            ("a token server without tokens", realm, b"{}", "no token"),
            ("a token with a line break", realm, b'{"token":"a\\r\\nX: y"}', "token"),
            ("a token server that is no server", 'Bearer realm="ftp://x/"', None, "no usable token server"),
            ("a token server that would get the password in the clear", f'Bearer realm="{secure}"', None, "plain http")):
        cases.registry.behaviours.append(("/v2/", unauthorized(challenge)))
        if answer:
            cases.registry.behaviours.append(("/token", token(answer)))
        asked.clear()
        cases.refused(what, 5, words)
        check(len(asked) <= 10, f"{what}: {len(asked)} requests of two commands")
    del cases.tool.environment["REGISTRY_AUTH_FILE"]
    for reference in ("oci://registry.example", "oci://../../x:t", "oci://h/../x:t", "oci://u:hunter2@h/x:t", "h/x:t"):
        run = cases.tool("pull", reference)
        check_fails(run, 2, "reference")
        check("hunter2" not in run.err, "no password is repeated", run)


def small_registries(cases):
    """A registry that does not answer ranges, and one that takes no upload in one piece."""
    def no_ranges(handler):
        name = handler.path.split("/")[-1]
        if name not in cases.registry.blobs:
            return False
        handler.send_data(cases.registry.blobs[name], ranges=False)
        return True

    cases.registry.behaviours.append(("/blobs/", no_ranges))
    run = cases.tool("fetch", "--manifest", cases.document, "--all", "--source", cases.place, "--store", cases.folder / "whole", "--json")
    check(run.code == 0 and run.json()["fetched"] == KERNELS, "no ranges: whole shards", run)
    check_store(cases.folder / "whole", cases.kernels, "whole shards")
    cases.registry.behaviours.clear()
    cases.registry.only_in_pieces = True
    cases.registry.blobs.clear()
    run = cases.tool("push", cases.file, cases.place, "--layer-bytes", LAYER)
    check(run.code == 0, "an upload in pieces", run)
    check(any(asked[0] == "PATCH" and asked[2] for asked in cases.registry.asked), "by PATCH, with its range")
    run = cases.tool("pull", cases.place, "-o", cases.folder / "pieces.zip")
    check(run.code == 0 and (cases.folder / "pieces.zip").read_bytes() == cases.file.read_bytes(), "and back", run)


def outputs(cases):
    for what, path, code in (("a folder", cases.folder, 2), ("a device", "/dev/null", 2), ("a path that is not there", "/nowhere/x", 6)):
        check_fails(cases.tool("pull", cases.place, "-o", path), code)
        check(not pathlib.Path("/nowhere").exists(), what)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        cases = Cases(Tool(sys.argv[1], folder), folder)
        for part in (manifests, blobs, config_of_others, kernels_of_others, redirects, challenges, small_registries, outputs):
            part(cases)
        cases.registry.end()
    print(f"ok: {cases.count} answers refused")


main()
