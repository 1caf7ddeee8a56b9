#!/usr/bin/python3
"""An EC2 endpoint on loopback, judging each request by botocore's service model and signer.

`ec2_fake.py [--directory DIR]` prints the port that it listens on, and serves until its standard input
ends. What a test wants of it comes and goes as JSON on /fake: POST sets knobs, GET tells what happened.
An "instance" runs its user data as a process, whose `shutdown` ends the instance, with DIR/i-… for /run.
"""

import argparse
import datetime
import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
from base64 import b64decode
from pathlib import Path

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import botocore.loaders
import botocore.model
import botocore.validate

MODEL = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("ec2", "service-2"), "ec2")
MOST_SKEW_S = 300


class Refusal(Exception):
    def __init__(self, code, message, status=400):
        super().__init__(message)
        self.code, self.message, self.status = code, message, status


def wire_name(member, name):
    """What EC2 calls a member in a query."""
    given = member.serialization
    if "queryName" in given:
        return given["queryName"]
    told = given.get("name", name)
    return told[0].upper() + told[1:]


def read_value(shape, prefix, query, used):
    """The value that a query's `prefix` holds, in the types that the model's validator takes."""
    if shape.type_name == "structure":
        found = {}
        for name, member in shape.members.items():
            value = read_value(member, f"{prefix}.{wire_name(member, name)}" if prefix else wire_name(member, name),
                               query, used)
            if value is not None:
                found[name] = value
        return found or None
    if shape.type_name == "list":
        found = []
        while (value := read_value(shape.member, f"{prefix}.{len(found) + 1}", query, used)) is not None:
            found.append(value)
        return found or None
    if prefix not in query:
        return None
    used.add(prefix)
    text = query[prefix]
    try:
        if shape.type_name in ("integer", "long"):
            return int(text)
        if shape.type_name in ("double", "float"):
            return float(text)
        if shape.type_name == "boolean":
            return {"true": True, "false": False}[text]
        if shape.type_name == "blob":
            return b64decode(text, validate=True)
    except (ValueError, KeyError) as wrong:
        raise Refusal("InvalidParameterValue", f"{prefix} is no {shape.type_name}: {text!r}") from wrong
    if shape.type_name == "string" and getattr(shape, "enum", None) and text not in shape.enum:
        raise Refusal("InvalidParameterValue", f"{prefix} is none of {shape.enum[:5]}…: {text!r}")
    return text


def xml_of(shape, name, value):
    """A value as the model says that EC2 writes it."""
    if shape.type_name == "structure":
        unknown = set(value) - set(shape.members)
        assert not unknown, f"{shape.name} has no {unknown}"
        inner = "".join(xml_of(member, member.serialization.get("name", key), value[key])
                        for key, member in shape.members.items() if value.get(key) is not None)
    elif shape.type_name == "list":
        inner = "".join(xml_of(shape.member, "item", each) for each in value)
    elif shape.type_name == "boolean":
        inner = "true" if value else "false"
    elif shape.type_name == "timestamp":
        inner = datetime.datetime.fromtimestamp(value, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    else:
        inner = str(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<{name}>{inner}</{name}>"


def check_signature(headers, body, url, keys):
    given = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/ec2/aws4_request, ?"
                         r"SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})", headers.get("Authorization", ""))
    if not given:
        raise Refusal("MissingAuthenticationToken", f"no signature: {headers.get('Authorization')!r}", 403)
    key_id, day, region, signed, signature = given.groups()
    stamp = headers.get("X-Amz-Date", "")
    when = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc).timestamp()
    if abs(when - time.time()) > MOST_SKEW_S or not stamp.startswith(day):
        raise Refusal("RequestExpired", "Request has expired.")
    if key_id not in keys:
        raise Refusal("AuthFailure", "AWS was not able to validate the provided access credentials", 401)
    signed = signed.split(";")
    wanted = {"host", "x-amz-date"} | ({"x-amz-security-token"} if keys[key_id][1] else set())
    if not wanted <= set(signed):
        raise Refusal("SignatureDoesNotMatch", f"signed are {signed}, wanted {sorted(wanted)}", 403)
    token = headers.get("X-Amz-Security-Token")
    if token != keys[key_id][1]:
        raise Refusal("AuthFailure", "the session token is not that of the key", 401)
    request = botocore.awsrequest.AWSRequest(method="POST", url=url, data=body)
    for name in signed:
        if name not in headers:
            raise Refusal("SignatureDoesNotMatch", f"the header {name} is signed and was not sent", 403)
        request.headers[name] = headers[name]
    request.context["timestamp"] = stamp
    signer = botocore.auth.SigV4Auth(botocore.credentials.Credentials(key_id, keys[key_id][0]), "ec2", region)
    canonical = signer.canonical_request(request)
    if signer.signature(signer.string_to_sign(request, canonical), request) != signature:
        raise Refusal("SignatureDoesNotMatch",
                      "The request signature we calculated does not match the signature you provided", 403)


class Instance:
    def __init__(self, fake, parameters):
        self.fake, self.id = fake, "i-" + uuid.uuid4().hex[:17]
        self.state, self.until, self.launched = "pending", fake.clock() + fake.knobs["start_s"], int(time.time())
        self.parameters, self.address = parameters, f"127.0.{fake.made // 200}.{fake.made % 200 + 2}"
        self.tags = {tag["Key"]: tag["Value"] for specification in parameters.get("TagSpecifications", [])
                     if specification["ResourceType"] == "instance" for tag in specification["Tags"]}
        self.behaviour = parameters.get("InstanceInitiatedShutdownBehavior", "stop")
        self.spot = parameters.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
        self.reason, self.process, self.ran_s, self.since = "", None, 0.0, None
        self.interrupted = False
        fake.made += 1

    def advance(self):
        if self.state in ("pending", "stopping", "shutting-down") and self.fake.clock() >= self.until:
            self.state = {"pending": "running", "stopping": "stopped", "shutting-down": "terminated"}[self.state]
            if self.state == "running":
                self.since = self.fake.clock()
                self.boot()
        if self.state == "running" and self.process and self.process.poll() is not None and self.shut_down().exists():
            self.reason = "Client.InstanceInitiatedShutdown"
            self.leave("shutting-down" if self.behaviour == "terminate" else "stopping")

    def home(self):
        return Path(self.fake.directory) / self.id

    def shut_down(self):
        return self.home() / "shut-down"

    def boot(self):
        """Runs the user data; what it thinks is /run is the instance's own, and so is its shutdown."""
        if not self.fake.directory:
            return
        for folder in ("bin", "etc"):
            (self.home() / folder).mkdir(parents=True, exist_ok=True)
        self.shut_down().unlink(missing_ok=True)
        (self.home() / "running").touch()  # ssh would answer
        stand_in = self.home() / "bin/shutdown"
        stand_in.write_text(f"#!/bin/sh\ntouch {self.shut_down()}\n")
        stand_in.chmod(0o755)
        data = self.parameters.get("UserData", "")
        script = b64decode(data).decode().replace("/run/", f"{self.home()}/").replace("/etc/", f"{self.home()}/etc/")
        self.process = subprocess.Popen(["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, start_new_session=True,
                                        env={**os.environ, "BERTH_FAKE_INSTANCE": self.id,
                                             "PATH": f"{self.home()}/bin:{os.environ['PATH']}"})

    def leave(self, state):
        if self.since is not None:
            self.ran_s += self.fake.clock() - self.since
            self.since = None
        self.state, self.until = state, self.fake.clock() + self.fake.knobs["end_s"]
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.fake.directory:
            (self.home() / "running").unlink(missing_ok=True)
            end_processes(self.id)

    def told(self):
        code = {"pending": 0, "running": 16, "shutting-down": 32, "terminated": 48, "stopping": 64, "stopped": 80}
        up = self.state == "running"
        return {"InstanceId": self.id, "State": {"Code": code[self.state], "Name": self.state},
                "InstanceType": self.parameters["InstanceType"], "LaunchTime": self.launched,
                "ClientToken": self.parameters.get("ClientToken", ""),
                "PublicIpAddress": self.address if up else None, "PrivateIpAddress": self.address,
                "InstanceLifecycle": "spot" if self.spot else None,
                "StateReason": {"Code": self.reason, "Message": self.reason} if self.reason else None,
                "Tags": [{"Key": key, "Value": value} for key, value in self.tags.items()]}


def end_processes(mark):
    """What runs "on" an instance: processes that carry BERTH_FAKE_INSTANCE=<its id>."""
    wanted = f"BERTH_FAKE_INSTANCE={mark}".encode()
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and wanted in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                os.kill(int(entry), signal.SIGKILL)
        except OSError:
            pass


class Fake:
    def __init__(self, directory):
        self.directory, self.lock, self.clock = directory, threading.RLock(), time.monotonic
        self.knobs = {"start_s": 0.3, "end_s": 0.2, "throttle": 0, "lose_answers": 0, "no_capacity": [],
                      "no_image": ["ami-00000000000000bad"],
                      "denied": [], "hidden_s": 0.0, "keys": {"AKIAFAKE": ["secret/with+signs=", None]}}
        self.instances, self.tokens, self.made, self.calls = {}, {}, 0, []

    def answer(self, query):
        action = query.pop("Action", "")
        version = query.pop("Version", "")
        if action not in MODEL.operation_names or version != MODEL.api_version:
            raise Refusal("InvalidAction", f"no action {action!r} of {version!r}")
        operation = MODEL.operation_model(action)
        used = set()
        parameters = read_value(operation.input_shape, "", query, used) or {}
        if set(query) - used:
            raise Refusal("UnknownParameter", f"{action} has no {sorted(set(query) - used)}")
        report = botocore.validate.ParamValidator().validate(parameters, operation.input_shape)
        if report.has_errors():
            raise Refusal("InvalidParameterValue", report.generate_report())
        with self.lock:
            self.calls.append([action, parameters])
            for instance in self.instances.values():
                instance.advance()
            if self.knobs["throttle"] > 0:
                self.knobs["throttle"] -= 1
                raise Refusal("RequestLimitExceeded", "Request limit exceeded.", 503)
            if action in self.knobs["denied"]:
                raise Refusal("UnauthorizedOperation", "You are not authorized to perform this operation.", 403)
            if parameters.pop("DryRun", False):
                raise Refusal("DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412)
            told = getattr(self, "do_" + action)(parameters)
            lost = action != "DescribeInstances" and self.knobs["lose_answers"] > 0
            if lost:
                self.knobs["lose_answers"] -= 1
        text = xml_of(operation.output_shape, action + "Response", told)
        return None if lost else text.replace(">", ' xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">', 1)

    def do_RunInstances(self, parameters):
        token = parameters["ClientToken"]
        if token in self.tokens:
            first, instances = self.tokens[token]
            if first != parameters:
                raise Refusal("IdempotentParameterMismatch", "the same token with other parameters")
            return {"ReservationId": "r-0123456789abcdef0", "Instances": [each.told() for each in instances]}
        if parameters["ImageId"] in self.knobs["no_image"]:
            raise Refusal("InvalidAMIID.NotFound", f"The image id '[{parameters['ImageId']}]' does not exist")
        if parameters["InstanceType"] in self.knobs["no_capacity"]:
            raise Refusal("InsufficientInstanceCapacity", "We currently do not have sufficient capacity", 500)
        assert parameters["MinCount"] == parameters["MaxCount"] == 1
        instance = Instance(self, parameters)
        self.instances[instance.id] = instance
        self.tokens[token] = (parameters, [instance])
        return {"ReservationId": "r-0123456789abcdef0", "Instances": [instance.told()]}

    def named(self, parameters):
        for each in parameters["InstanceIds"]:
            if each not in self.instances:
                raise Refusal("InvalidInstanceID.NotFound", f"The instance ID '{each}' does not exist")
        return [self.instances[each] for each in parameters["InstanceIds"]]

    def change(self, parameters, key, allowed, to):
        changes = []
        for instance in self.named(parameters):
            before = instance.state
            if before not in allowed and before != to:
                raise Refusal("IncorrectInstanceState", f"The instance '{instance.id}' is not in a state for it")
            if before in allowed and before != to:
                if to == "pending":
                    instance.launched = int(time.time())
                instance.leave(to)
                if to == "pending":
                    instance.until = self.clock() + self.knobs["start_s"]
            changes.append({"InstanceId": instance.id, "CurrentState": {"Name": instance.state},
                            "PreviousState": {"Name": before}})
        return {key: changes}

    def do_TerminateInstances(self, parameters):
        for instance in self.named(parameters):
            if instance.state not in ("shutting-down", "terminated"):
                instance.leave("shutting-down")
        return self.change(parameters, "TerminatingInstances", ("shutting-down", "terminated"), "shutting-down")

    def do_StopInstances(self, parameters):
        return self.change(parameters, "StoppingInstances", ("pending", "running", "stopping", "stopped"), "stopping")

    def do_StartInstances(self, parameters):
        return self.change(parameters, "StartingInstances", ("stopped", "running"), "pending")

    def do_DescribeInstances(self, parameters):
        found = [each for each in self.instances.values() if time.time() - each.launched >= self.knobs["hidden_s"]]
        for narrow in parameters.get("Filters", []):
            name, values = narrow["Name"], narrow["Values"]
            if name.startswith("tag:"):
                found = [each for each in found if each.tags.get(name[4:]) in values]
            elif name == "instance-id":
                found = [each for each in found if each.id in values]
            elif name == "instance-state-name":
                found = [each for each in found if each.state in values]
            elif name == "client-token":
                found = [each for each in found if each.parameters.get("ClientToken") in values]
            else:
                raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
        start = int(parameters.get("NextToken", "0"))
        end = start + parameters.get("MaxResults", 1000)
        return {"Reservations": [{"ReservationId": "r-0123456789abcdef0", "Instances": [each.told()]}
                                 for each in found[start:end]],
                "NextToken": str(end) if end < len(found) else None}

    def do_DescribeSpotInstanceRequests(self, parameters):
        values = next((each["Values"] for each in parameters.get("Filters", []) if each["Name"] == "instance-id"), [])
        return {"SpotInstanceRequests": [
            {"InstanceId": each.id, "State": "active", "Status": {
                "Code": "marked-for-termination" if each.interrupted else "fulfilled"}}
            for each in self.instances.values() if each.spot and each.id in values]}

    def told(self):
        with self.lock:
            for instance in self.instances.values():
                instance.advance()
            return {"instances": [{"id": each.id, "state": each.state, "type": each.parameters["InstanceType"],
                                   "tags": each.tags, "spot": each.spot, "address": each.address,
                                   "reason": each.reason, "behaviour": each.behaviour,
                                   "ran_s": each.ran_s + (self.clock() - each.since if each.since else 0)}
                                  for each in self.instances.values()],
                    "calls": [each[0] for each in self.calls]}

    def set(self, wanted):
        with self.lock:
            for interrupted in wanted.pop("interrupt", []):
                self.instances[interrupted].interrupted = True
            for lost in wanted.pop("lose", []):
                self.instances[lost].reason = "Server.SpotInstanceTermination"
                self.instances[lost].leave("shutting-down")
            for made in wanted.pop("make", []):
                instance = Instance(self, {"InstanceType": made["type"], "TagSpecifications": []})
                instance.id, instance.state = made["id"], made.get("state", "stopped")
                self.instances[instance.id] = instance
            self.knobs.update(wanted)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake = None

    def reply(self, status, text, kind="text/xml;charset=UTF-8"):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply(200, json.dumps(self.fake.told()), "application/json")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/fake":
            self.fake.set(json.loads(body))
            self.reply(200, "{}", "application/json")
            return
        try:
            check_signature(self.headers, body, f"http://{self.headers['Host']}{self.path}", self.fake.knobs["keys"])
            query = dict(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True))
            text = self.fake.answer(query)
        except Refusal as refused:
            self.reply(refused.status, '<?xml version="1.0" encoding="UTF-8"?><Response><Errors><Error>'
                       + xml_of(botocore.model.Shape("s", {"type": "string"}), "Code", refused.code)
                       + xml_of(botocore.model.Shape("s", {"type": "string"}), "Message", refused.message)
                       + f"</Error></Errors><RequestID>{uuid.uuid4()}</RequestID></Response>")
            return
        if text is None:
            self.close_connection = True  # the answer is lost
            return
        self.reply(200, '<?xml version="1.0" encoding="UTF-8"?>' + text)

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--directory", default="")
    Handler.fake = Fake(parser.parse_args().directory)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()
    server.shutdown()
    for instance in Handler.fake.instances.values():
        end_processes(instance.id)
        if instance.process and instance.process.poll() is None:
            os.killpg(instance.process.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
