"""The system's nginx on a free port of this machine, with a configuration of its own."""
import pathlib
import socket
import subprocess
import time


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Nginx:
    def __init__(self, folder, root, server=""):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        temp = "\n".join(f"{kind}_temp_path {self.folder}/tmp;"
                         for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (self.folder / "nginx.conf").write_text(f"""daemon off; master_process off;
pid {self.folder}/pid; error_log {self.folder}/error.log;
events {{ worker_connections 512; }}
http {{ {temp}
  log_format t '$request_method $request_uri $status $body_bytes_sent';
  access_log {self.folder}/access.log t;
  default_type application/octet-stream; sendfile on; keepalive_requests 100000;
  server {{ listen 127.0.0.1:{self.port}; root {root}; {server} }}
}}
""")
        self.process = subprocess.Popen(["nginx", "-p", str(self.folder), "-e", f"{self.folder}/error.log",
                                         "-c", f"{self.folder}/nginx.conf"])
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            with socket.socket() as one:
                if one.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise RuntimeError("nginx did not start")

    def requests(self):
        log = self.folder / "access.log"
        return log.read_text().splitlines() if log.exists() else []

    def end(self):
        self.process.kill()
        self.process.wait()
