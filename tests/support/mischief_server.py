#!/usr/bin/env python3
"""An HTTP server that misbehaves on demand: GET /<behaviour>/<file below the root>.

GET /nNUMBER/<behaviour>/... is the same, counted apart.

Usage: mischief_server.py ROOT PORT_FILE
Writes its port to PORT_FILE once it listens. GET /_log is a JSON list of the requests so far, in
order: path, range, if_range, authorization, host, sent (bytes of body).
"""
import gzip
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

HTML = b"<!DOCTYPE html><html><body>Please log in to the guest network.</body></html>"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 130000\n"
STALL_SECONDS = 60


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "mischief"
    log, seen, lock = [], {}, threading.Lock()
    root = "."

    def log_message(self, *args):
        pass

    def note(self):
        entry = {"path": self.path, "range": self.headers.get("Range", ""),
                 "if_range": self.headers.get("If-Range", ""),
                 "authorization": self.headers.get("Authorization", ""),
                 "accept": self.headers.get("Accept", ""),
                 "host": self.headers.get("Host", ""), "sent": 0}
        with self.lock:
            self.log.append(entry)
            self.seen[self.path] = self.seen.get(self.path, 0) + 1
            self.times = self.seen[self.path]
        return entry

    def head(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()

    def body(self, data):
        self.wfile.write(data)
        self.wfile.flush()
        self.entry["sent"] += len(data)

    def answer(self, status, data, **headers):
        all_headers = {"Content-Length": len(data), "Content-Type": "application/octet-stream"}
        all_headers.update({k.replace("_", "-"): v for k, v in headers.items()})
        self.head(status, all_headers)
        self.body(data)

    def range_of(self, size):
        """(first, last) of a single byte range, or None."""
        text = self.headers.get("Range", "")
        if not text.startswith("bytes="):
            return None
        first, _, last = text[6:].partition("-")
        if first == "":
            return max(0, size - int(last)), size - 1
        return int(first), min(int(last), size - 1) if last else size - 1

    def serve(self, data, etag='"v1"', slow=None):
        wanted = self.range_of(len(data))
        if_range = self.headers.get("If-Range")
        if wanted is None or (if_range and if_range != etag):
            self.head(200, {"Content-Length": len(data), "ETag": etag, "Accept-Ranges": "bytes"})
            (slow or self.body)(data)
            return
        first, last = wanted
        if first >= len(data):
            self.head(416, {"Content-Range": f"bytes */{len(data)}", "Content-Length": 0})
            return
        part = data[first:last + 1]
        self.head(206, {"Content-Length": len(part), "ETag": etag,
                        "Content-Range": f"bytes {first}-{last}/{len(data)}"})
        (slow or self.body)(part)

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/_log":
            with self.lock:
                text = json.dumps(self.log).encode()
            self.entry = {"sent": 0}
            return self.answer(200, text, Content_Type="application/json")
        self.entry = self.note()
        _, behaviour, path = (url.path.split("/", 2) + ["", ""])[:3]
        self.query = {k: v[0] for k, v in parse_qs(url.query).items()}
        if re.fullmatch(r"n\d+", behaviour):  # keeps the counts of one user apart from another's
            _, behaviour, path = ("/" + path).split("/", 2)
        act = self.act_of(behaviour)
        if act is None:
            return self.answer(404, b"no such behaviour")
        data = b""
        if path:
            file = os.path.join(self.root, unquote(path))
            if os.path.isdir(file):
                file = os.path.join(file, "index.html")
            if not os.path.isfile(file):
                return self.answer(404, b"no such file")
            with open(file, "rb") as stream:
                data = stream.read()
        try:
            act(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def act_of(self, behaviour):
        """A behaviour by name, or one that comes at a time: "at-2-NAME" (the second request for this
        path, the others are answered well), "first-ONE-then-TWO", "away-to-NAME" (by a redirect)."""
        if match := re.fullmatch(r"at-(\d+)-(.+)", behaviour):
            behaviour = match[2] if self.times == int(match[1]) else "ok"
            self.times = 1
        elif match := re.fullmatch(r"first-(500|truncate)-then-(.+)", behaviour):
            behaviour = match[1] if self.times == 1 else match[2]
            self.times = max(1, self.times - 1)
        elif match := re.fullmatch(r"away-to-(.+)", behaviour):
            target = self.path.replace("/away-to-", "/", 1)
            return lambda _data: self.answer(302, b"", Location=target)
        return getattr(self, "do_" + behaviour.replace("-", "_"), None)

    # Well behaved.
    def do_ok(self, data):
        self.serve(data)

    def do_no_etag(self, data):
        wanted = self.range_of(len(data))
        if wanted is None:
            return self.answer(200, data)
        first, last = wanted
        self.answer(206, data[first:last + 1], Content_Range=f"bytes {first}-{last}/{len(data)}")

    def do_pace(self, data):
        def slowly(part):
            steps = 10
            for i in range(steps):
                self.body(part[len(part) * i // steps:len(part) * (i + 1) // steps])
                time.sleep(float(self.query.get("seconds", "1")) / steps)
        self.serve(data, slow=slowly)

    def do_index(self, data):
        self.answer(200, data, Content_Type=self.query.get("type", "application/json"))

    # Short, long, slow.
    def half_and_close(self, data):
        self.body(data[:len(data) // 2])
        self.close_connection = True

    def do_truncate(self, data):
        self.serve(data, slow=self.half_and_close)

    def do_truncate_once(self, data):
        self.serve(data, slow=self.half_and_close if self.times == 1 else None)

    def do_truncate_once_then_other(self, data):
        if self.times == 1:
            return self.serve(data, slow=self.half_and_close)
        self.serve(bytes(b ^ 0xff for b in data), etag='"v2"')

    def do_truncate_no_length(self, data):
        self.head(200, {"Connection": "close"})
        self.half_and_close(data)

    def do_short(self, data):
        self.answer(200, data[:len(data) // 2])

    def do_long(self, data):
        self.answer(200, data + b"x" * 100)

    def do_long_no_length(self, data):
        self.head(200, {"Connection": "close"})
        self.body(data + b"x" * 100)
        self.close_connection = True

    def do_bad_chunks(self, data):
        self.head(200, {"Transfer-Encoding": "chunked"})
        self.body(b"%x\r\n" % len(data) + data[:len(data) // 2])
        self.close_connection = True

    def stall(self, data):
        self.body(data[:len(data) // 2])
        time.sleep(STALL_SECONDS)

    def do_stall(self, data):
        self.serve(data, slow=self.stall)

    def do_stall_once(self, data):
        self.serve(data, slow=self.stall if self.times == 1 else None)

    def do_stall_once_then_new_etag(self, data):
        """The same bytes under another validator: what came before cannot be gone on from."""
        if self.times == 1:
            return self.serve(data, slow=self.stall)
        self.serve(data, etag='"v2"')

    def do_stall_once_then_other(self, data):
        """A server that wrongly vouches for other bytes."""
        if self.times == 1:
            return self.serve(bytes(b ^ 0xff for b in data), slow=self.stall)
        self.serve(data)

    def do_silent(self, _data):
        time.sleep(STALL_SECONDS)

    def do_drip(self, data):
        def dripping(part):
            for i in range(len(part)):
                self.body(part[i:i + 1])
                time.sleep(0.05)
        self.serve(data, slow=dripping)

    def do_close(self, _data):
        self.close_connection = True

    # Something else than the file.
    def do_html(self, _data):
        self.answer(200, HTML, Content_Type="text/html; charset=utf-8")

    def do_html_as_data(self, _data):
        self.answer(200, HTML)

    def do_lfs(self, _data):
        self.answer(200, LFS)

    def do_empty(self, _data):
        self.answer(200, b"")

    def do_wrong(self, data):
        self.serve(data[:-1] + bytes([data[-1] ^ 1]))

    def do_zeros(self, data):
        self.serve(data[:len(data) // 2] + bytes(len(data) - len(data) // 2))

    def do_gzip(self, data):
        self.answer(200, gzip.compress(data), Content_Encoding="gzip")

    # Ranges.
    def do_no_range(self, data):
        self.answer(200, data)

    def do_wrong_range(self, data):
        first, last = self.range_of(len(data)) or (0, len(data) - 1)
        self.answer(206, data[first:last + 1],
                    Content_Range=f"bytes {first + 1}-{last + 1}/{len(data) + 1}")

    def do_no_content_range(self, data):
        first, last = self.range_of(len(data)) or (0, len(data) - 1)
        self.answer(206, data[first:last + 1])

    def do_bad_content_range(self, data):
        self.answer(206, data, Content_Range="bytes banana")

    def do_always_changing(self, data):
        self.serve(data, etag=f'"v{time.monotonic_ns()}"')

    def do_other_after(self, data):
        """Another file (and ETag) from the third request on."""
        if self.times < 3:
            return self.serve(data)
        self.serve(bytes(b ^ 0xff for b in data), etag='"v2"')

    def do_part_unasked(self, data):
        self.answer(206, data[:10], Content_Range=f"bytes 0-9/{len(data)}")

    # Statuses.
    def do_403(self, _data):
        self.answer(403, b"forbidden")

    def do_404(self, _data):
        self.answer(404, b"not found")

    def do_500(self, _data):
        self.answer(500, b"broken")

    def do_500_then_ok(self, data):
        if self.times == 1:
            return self.answer(500, b"broken")
        self.serve(data)

    def do_429_then_ok(self, data):
        if self.times == 1:
            return self.answer(429, b"slow down", Retry_After="1")
        self.serve(data)

    def do_429_for_long(self, _data):
        self.answer(429, b"slow down", Retry_After="86400")

    def do_408_then_ok(self, data):
        if self.times == 1:
            return self.answer(408, b"too slow")
        self.serve(data)

    def do_redirect(self, _data):
        self.answer(302, b"", Location=self.query.get("to", "/ok/"))

    def do_redirect_to_other_host(self, _data):
        """The same machine by another name."""
        port = self.server.server_address[1]
        path = self.path.split("/", 2)[2]
        self.answer(302, b"", Location=f"http://localhost:{port}/ok/{path}")

    def do_loop(self, _data):
        self.answer(302, b"", Location=self.path)


def main():
    Handler.root = sys.argv[1]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that goes away is part of the tests
    with open(sys.argv[2] + ".tmp", "w", encoding="utf-8") as stream:
        stream.write(str(server.server_address[1]))
    os.rename(sys.argv[2] + ".tmp", sys.argv[2])
    server.serve_forever()


main()
