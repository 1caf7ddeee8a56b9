"""Berth from Python by ctypes: consumer.py LIBRARY."""

import ctypes
import json
import os
import sys

berth = ctypes.CDLL(sys.argv[1])
berth.berth_version.restype = ctypes.c_char_p
berth.berth_free_text.argtypes = [ctypes.c_char_p]
berth.berth_free_text.restype = None


class Request(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in
                ("cpu_milli", "mem", "disk", "gpu", "gpu_mem", "gpu_slots", "priority", "wait_ms")]
    _fields_.append(("label", ctypes.c_char_p))


class BerthError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def call(function, *arguments):
    """Calls what takes a message at its end."""
    message = ctypes.create_string_buffer(200)
    code = function(*arguments, message, ctypes.c_size_t(len(message)))
    if code != 0:
        raise BerthError(code, message.value.decode())


def text(function, *arguments):
    """The JSON of a function whose last argument but the message is where it goes."""
    answer = ctypes.c_void_p()
    call(function, *arguments, ctypes.byref(answer))
    try:
        return json.loads(ctypes.string_at(answer))
    finally:
        berth.berth_free_text(ctypes.cast(answer, ctypes.c_char_p))


assert berth.berth_version().startswith(b"0.3.")
os.environ["BERTH_TOPOLOGY"] = "dgx-h100"

machine = ctypes.c_void_p()
call(berth.berth_machine_open, None, ctypes.byref(machine))
request = Request(gpu=2, cpu_milli=500, label=b"notebook")
assert len(text(berth.berth_machine_dry_run, machine, ctypes.byref(request))["devices"]) == 2
held = ctypes.c_void_p()
call(berth.berth_machine_reserve, machine, ctypes.byref(request), ctypes.byref(held))
now = text(berth.berth_machine_json, machine)
assert len(now["total"]["devices"]) == 8 and now["free"]["resources"]["gpu"] == 6
assert [holder["label"] for holder in now["holders"]] == ["notebook"]
try:
    call(berth.berth_machine_reserve, machine, ctypes.byref(Request(gpu=7)), ctypes.byref(held))
    raise AssertionError("7 of 6 GPUs")
except BerthError as error:
    assert error.code == 2 and "notebook" in str(error), error
berth.berth_reservation_destroy(held)
berth.berth_machine_destroy(machine)
print("ok")
