"""Small servers of files on loopback for tests: HTTP with ranges and whatever goes wrong, and what S3 does of it, whose
signatures are judged by botocore's signer."""

import datetime
import email.utils
import hashlib
import http.server
import re
import threading
import time
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

MOST_SKEW_S = 300


class Content:
    """What lies under one path, and how it is served."""

    def __init__(self, body, etag=True, ranges=True, modified=True):
        self.body, self.ranges, self.modified = body, ranges, modified
        self.etag = f'"{hashlib.md5(body).hexdigest()}"' if etag is True else etag
        self.meta = {}
        self.cut_after = []    # of the next answers: the connection breaks after so many bytes of the body
        self.body_after_cut = None  # replaces the body once the connection broke, with the same validators
        self.statuses = []     # of the next answers, before there is one
        self.bytes_per_s = None


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *ignored):
        pass

    def reply(self, status, headers=(), body=b""):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != 304:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def serve(self):
        size = int(self.headers.get("Content-Length") or 0)
        sent = self.rfile.read(size)
        server = self.server.of
        with server.lock:
            server.asked.append((self.command, self.path, dict(self.headers.items())))
        try:
            server.answer(self, sent)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve


class FileServer:
    """`files` by path; `asked` has what was asked for: (method, path, headers)."""

    def __init__(self):
        self.files, self.asked, self.lock = {}, [], threading.RLock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.of, self.server.daemon_threads = self, True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def put(self, path, body, **more):
        with self.lock:
            self.files[path] = Content(body, **more)
            return self.files[path]

    def methods(self, since=0):
        with self.lock:
            return [method for method, _, _ in self.asked[since:]]

    def answer(self, request, _):
        path = request.path.partition("?")[0]
        with self.lock:
            content = self.files.get(path)
        if content is None:
            return request.reply(404, body=b"no such file")
        self.serve_content(request, content)

    def serve_content(self, request, content):
        headers = [("ETag", content.etag)] if content.etag else []
        if content.modified:
            modified = 1_600_000_000 + len(content.body) if content.modified is True else content.modified
            headers.append(("Last-Modified", email.utils.formatdate(modified, usegmt=True)))
        headers += [(f"x-amz-meta-{name}", value) for name, value in content.meta.items()]
        given = request.headers
        with self.lock:
            status = content.statuses.pop(0) if content.statuses else 0
            cut = content.cut_after.pop(0) if content.cut_after and request.command == "GET" and not status else None
        if status:
            return request.reply(status, body=b"not now")
        if content.etag and given.get("If-None-Match") == content.etag:
            return request.reply(304, headers)
        if content.modified and not content.etag and given.get("If-Modified-Since") == dict(headers)["Last-Modified"]:
            return request.reply(304, headers)
        if given.get("If-Match") not in (None, content.etag):
            return request.reply(412, headers)
        body, status = content.body, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", given.get("Range", ""))
        if wanted and content.ranges and given.get("If-Range", content.etag) in [value for _, value in headers]:
            begin = int(wanted[1])
            if begin >= len(body):
                return request.reply(416, [("Content-Range", f"bytes */{len(body)}")])
            headers.append(("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}"))
            body, status = body[begin:], 206
        request.send_response(status)
        for name, value in [*headers, ("Content-Length", str(len(body)))]:
            request.send_header(name, value)
        request.end_headers()
        if request.command == "HEAD":
            return None
        return self.send_body(request, content, body, cut)

    @staticmethod
    def send_body(request, content, body, cut):
        if cut is not None:
            body = body[:cut]
            request.close_connection = True
            content.body = content.body_after_cut or content.body
        step = max(content.bytes_per_s // 20, 1) if content.bytes_per_s else 1 << 16
        for begin in range(0, len(body), step):
            request.wfile.write(body[begin:begin + step])
            if content.bytes_per_s:
                time.sleep(0.05)
        request.wfile.flush()


class Refusal(Exception):
    def __init__(self, status, code, message):
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class S3Server(FileServer):
    """Objects of buckets by path ("/bucket/key"); `secrets` by key id. Without an entry there anybody may do anything."""

    def __init__(self, secrets=None, region="us-east-1"):
        super().__init__()
        self.secrets, self.region, self.uploads, self.parts, self.refuse = secrets or {}, region, {}, [], {}

    def answer(self, request, sent):
        try:
            if self.secrets:
                self.check_signature(request, sent)
            status = self.refuse.get(request.command)
            if status:
                raise Refusal(status, "SlowDown" if status == 503 else "AccessDenied", "not today")
            self.answer_s3(request, sent)
        except Refusal as refusal:
            body = f"<Error><Code>{refusal.code}</Code><Message>{refusal.message}</Message></Error>".encode()
            request.reply(refusal.status, [("Content-Type", "application/xml")], body)

    def answer_s3(self, request, sent):
        url = urllib.parse.urlsplit(request.path)
        path, query = urllib.parse.unquote(url.path), dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        meta = {name[len("x-amz-meta-"):].lower(): value for name, value in request.headers.items()
                if name.lower().startswith("x-amz-meta-")}
        with self.lock:
            if request.command in ("GET", "HEAD"):
                if path not in self.files:
                    raise Refusal(404, "NoSuchKey", "The specified key does not exist.")
                content = self.files[path]
            elif request.command == "PUT" and "uploadId" in query:
                self.uploads[query["uploadId"]][1][int(query["partNumber"])] = sent
                self.parts.append(len(sent))
                return request.reply(200, [("ETag", f'"{hashlib.md5(sent).hexdigest()}"')])
            elif request.command == "PUT":
                content = self.put(path, sent)
                content.meta = meta
                return request.reply(200, [("ETag", content.etag)])
            elif request.command == "POST" and "uploads" in query:
                name = f"upload {len(self.uploads) + 1}+/="
                self.uploads[name] = (meta, {})
                return request.reply(200, body=f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>"
                                               "</InitiateMultipartUploadResult>".encode())
            elif request.command == "POST":
                meta, parts = self.uploads.pop(query["uploadId"])
                named = re.findall(r"<PartNumber>(\d+)</PartNumber><ETag>(.*?)</ETag>", sent.decode())
                if [(str(n), f'"{hashlib.md5(parts[n]).hexdigest()}"') for n in sorted(parts)] != named:
                    raise Refusal(400, "InvalidPart", "these are not the parts that came")
                content = self.put(path, b"".join(parts[n] for n in sorted(parts)))
                content.meta, content.etag = meta, f'"whole-{len(parts)}"'
                return request.reply(200, body=b"<CompleteMultipartUploadResult/>")
            elif request.command == "DELETE" and "uploadId" in query:
                self.uploads.pop(query["uploadId"], None)
                return request.reply(204)
            else:
                raise Refusal(400, "InvalidRequest", request.command)
        return self.serve_content(request, content)

    def check_signature(self, request, sent):
        given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/s3/aws4_request, ?"
                             r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})",
                             request.headers.get("Authorization", ""))
        if not given:
            raise Refusal(403, "AccessDenied", "Access Denied")
        key_id, _, region, signed, signature = given.groups()
        if region != self.region:
            raise Refusal(400, "AuthorizationHeaderMalformed", f"the region is {self.region}")
        if key_id not in self.secrets:
            raise Refusal(403, "InvalidAccessKeyId", "The key is not known")
        stamp = request.headers.get("X-Amz-Date", "")
        when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
        if abs(when.timestamp() - time.time()) > MOST_SKEW_S:
            raise Refusal(403, "RequestTimeTooSkewed", "the clock")
        signed = signed.split(";")
        if not {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed):
            raise Refusal(403, "SignatureDoesNotMatch", f"signed are {signed}")
        if request.headers["x-amz-content-sha256"] != hashlib.sha256(sent).hexdigest():
            raise Refusal(400, "XAmzContentSHA256Mismatch", "the body is another")
        ours = botocore.awsrequest.AWSRequest(method=request.command, url=self.url + request.path, data=sent)
        for name in signed:
            if name not in request.headers:
                raise Refusal(403, "SignatureDoesNotMatch", f"{name} is signed and was not sent")
            ours.headers[name] = request.headers[name]
        ours.context["timestamp"] = stamp
        signer = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(key_id, self.secrets[key_id]), "s3", region)
        if signer.signature(signer.string_to_sign(ours, signer.canonical_request(ours)), ours) != signature:
            raise Refusal(403, "SignatureDoesNotMatch", "The request signature does not match")
