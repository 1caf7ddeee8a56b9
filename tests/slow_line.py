#!/usr/bin/python3
"""A ProxyCommand for ssh: a connection to HOST PORT whose bytes take SECONDS each way.

    slow_line.py SECONDS HOST PORT
"""

import collections
import os
import selectors
import socket
import sys
import time


def main():
    delay = float(sys.argv[1])
    server = socket.create_connection((sys.argv[2], int(sys.argv[3])))
    server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    here, there = 0, server.fileno()
    ready = selectors.DefaultSelector()
    for fd in (here, there):
        ready.register(fd, selectors.EVENT_READ)
    on_the_way = collections.deque()  # (when it arrives, to whom, the bytes): in order, for all take as long
    while True:
        wait = max(0, on_the_way[0][0] - time.monotonic()) if on_the_way else None
        for key, _ in ready.select(wait):
            data = os.read(key.fd, 65536)
            if not data:
                ready.unregister(key.fd)
            on_the_way.append((time.monotonic() + delay, there if key.fd == here else 1, data))
        while on_the_way and on_the_way[0][0] <= time.monotonic():
            _, to, data = on_the_way.popleft()
            if not data:
                return
            while data:
                data = data[os.write(to, data):]


main()
