#!/usr/bin/env python3
"""Sends a command to the radio and prints its reply: ctl.py WORD…, or one command a line on standard input.

The socket is $RELINK_LAB_CONTROL. Exit status 0 when every reply says ok.
"""
import json
import os
import socket
import sys

DEFAULT = '/run/relink-lab.control'


class Control:
    """One connection to the radio."""

    def __init__(self, path=None):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(path or os.environ.get('RELINK_LAB_CONTROL', DEFAULT))
        self.lines = self.socket.makefile('rb')

    def __call__(self, command):
        self.socket.sendall(command.encode() + b'\n')
        line = self.lines.readline()
        if not line:
            raise ConnectionError('the radio has gone')
        return json.loads(line)


def main(words):
    control, failures = Control(), 0
    commands = [' '.join(words)] if words else (line.strip() for line in sys.stdin)
    for command in commands:
        reply = control(command)
        failures += not reply['ok']
        print(json.dumps(reply), flush=True)
    return failures != 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
