"""Registries for tests: Debian's docker-registry with no, basic or token authentication, a token server for
it, and one made here that can be told to lie."""
import base64
import crypt
import hashlib
import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse

USER, PASSWORD = "ada", "correct:horse"


def installed():
    return bool(shutil.which("docker-registry") and shutil.which("skopeo"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class DockerRegistry:
    """auth: None, "basic" (USER, PASSWORD), or a TokenServer."""

    def __init__(self, folder, auth=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True)
        port = free_port()
        self.host = f"127.0.0.1:{port}"
        config = {"version": "0.1", "log": {"level": "warn"},
                  "storage": {"filesystem": {"rootdirectory": str(self.folder / "data")}},
                  "http": {"addr": self.host, "secret": "made up"}}
        if auth == "basic":
            hashed = crypt.crypt(PASSWORD, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
            (self.folder / "htpasswd").write_text(f"{USER}:{hashed}\n")
            config["auth"] = {"htpasswd": {"realm": "test", "path": str(self.folder / "htpasswd")}}
        elif auth:
            config["auth"] = {"token": {"realm": auth.realm, "service": "registry", "issuer": "tests",
                                        "rootcertbundle": str(auth.certificate)}}
        (self.folder / "config.yml").write_text(json.dumps(config))
        self.log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.folder / "config.yml")],
                                        stdout=self.log, stderr=self.log)
        for _ in range(400):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.025)
        raise RuntimeError(f"docker-registry does not start: {(self.folder / 'log').read_text()}")

    def requests(self):
        """Lines of the access log: 'GET /v2/... 206 BYTES'."""
        found = []
        for line in (self.folder / "log").read_text().splitlines():
            parts = line.split('"')
            if len(parts) > 2 and parts[1].split(" ")[0] in ("GET", "HEAD", "POST", "PUT", "PATCH"):
                found.append(" ".join(parts[1].split(" ")[:2] + parts[2].split()[:2]))
        return found

    def end(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


class Server:
    """An http.server in a thread whose handler finds this object as `server.owner`."""

    def __init__(self, handler):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None  # clients that hang up are what the tests are about
        self.server.owner = self
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()


def plain_base64(data, url=False):
    text = (base64.urlsafe_b64encode if url else base64.b64encode)(data).decode()
    return text.rstrip("=") if url else text


class TokenHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        owner = self.server.owner
        query = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        given = self.headers.get("Authorization", "")
        owner.asked.append((self.path, given))
        wanted = "Basic " + plain_base64(f"{USER}:{PASSWORD}".encode())
        if given != wanted:
            return self.answer(401, {"errors": [{"code": "UNAUTHORIZED", "message": "who are you"}]})
        return self.give(query.get("scope", [""])[0])

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.owner.asked.append((self.path, "POST"))
        if form.get("refresh_token") != ["identity"] or form.get("grant_type") != ["refresh_token"]:
            return self.answer(401, {})
        return self.give(form["scope"][0])

    def give(self, scope):
        kind, name, actions = scope.split(":")
        access = [{"type": kind, "name": name, "actions": actions.split(",")}]
        token = self.server.owner.token(access)
        self.answer(200, {"token": token, "expires_in": self.server.owner.lifetime})

    def answer(self, status, document):
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class TokenServer(Server):
    """Signs tokens (RS256) that a DockerRegistry made with it believes."""

    def __init__(self, folder):
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True)
        self.key, self.certificate = folder / "key.pem", folder / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(self.key), "-out",
                        str(self.certificate), "-days", "2", "-subj", "/CN=tests"], check=True, capture_output=True)
        self.asked, self.lifetime = [], 300
        self.begin, self.end_of_life = -10, 300  # seconds from now on: when tokens are good
        super().__init__(TokenHandler)
        self.realm = f"http://{self.host}/token"

    def token(self, access):
        der = subprocess.run(["openssl", "x509", "-in", str(self.certificate), "-outform", "der"], check=True,
                             capture_output=True).stdout
        now = int(time.time())
        head = {"typ": "JWT", "alg": "RS256", "x5c": [plain_base64(der)]}
        claims = {"iss": "tests", "sub": USER, "aud": "registry", "iat": now, "nbf": now + self.begin,
                  "exp": now + self.end_of_life, "jti": str(time.time_ns()), "access": access}
        text = ".".join(plain_base64(json.dumps(part).encode(), url=True) for part in (head, claims))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", str(self.key)], input=text.encode(),
                                   check=True, capture_output=True).stdout
        return text + "." + plain_base64(signature, url=True)


class MadeHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        owner = self.server.owner
        owner.asked.append((self.command, self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        for part, behave in owner.behaviours:
            if part in self.path and behave(self):
                return
        kind, name = self.path.split("/")[-2:]
        data = owner.manifests.get(name) if kind == "manifests" else owner.blobs.get(name)
        if data is None:
            return self.answer(404, b'{"errors":[{"code":"UNKNOWN","message":"no such thing"}]}')
        self.send_data(data)

    do_HEAD = do_GET

    def do_POST(self):
        self.server.owner.asked.append((self.command, self.path, None, self.headers.get("Authorization")))
        with self.server.owner.lock:
            name = f"session{len(self.server.owner.uploads)}"
            self.server.owner.uploads[name] = b""
        self.answer(202, headers={"Location": f"{self.path}{name}?state=0"})

    def session(self):
        return self.path.split("?")[0].split("/")[-1]

    def do_PATCH(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.owner.asked.append((self.command, self.path, self.headers.get("Content-Range"), None))
        self.server.owner.uploads[self.session()] += body
        self.answer(202, headers={"Location": self.path.split("?")[0] + "?state=1"})

    def do_PUT(self):
        owner = self.server.owner
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        owner.asked.append((self.command, self.path, None, self.headers.get("Authorization")))
        if "/manifests/" in self.path:
            owner.manifests[self.path.split("/")[-1]] = body
            return self.answer(201)
        digest = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)["digest"][0]
        if body and owner.only_in_pieces:
            return self.answer(413)
        data = body or owner.uploads[self.session()]
        if sha256(data) != digest:
            return self.answer(400, b'{"errors":[{"code":"DIGEST_INVALID"}]}')
        owner.blobs[digest] = data
        self.answer(201)

    def send_data(self, data, ranges=True):
        wanted = self.headers.get("Range") if ranges else None
        if wanted:
            first, last = wanted.removeprefix("bytes=").split("-")
            first, last = int(first), int(last or len(data) - 1)
            part = data[first:last + 1]
            return self.answer(206, part, {"Content-Range": f"bytes {first}-{last}/{len(data)}"})
        return self.answer(200, data)

    def answer(self, status, body=b"", headers=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class MadeRegistry(Server):
    """Serves `manifests` (by tag or digest) and `blobs` (by digest); takes pushes. behaviours: (part of a path,
    function that answers a handler's GET and says whether it did)."""

    def __init__(self):
        self.manifests, self.blobs, self.behaviours, self.asked = {}, {}, [], []
        self.only_in_pieces, self.uploads, self.lock = False, {}, threading.Lock()
        super().__init__(MadeHandler)

    def put(self, data):
        self.blobs[sha256(data)] = data
        return sha256(data)
