#!/usr/bin/env python3
"""Prepares the emulated adapter over the kernel's management channel.

  adapter.py setup             wait for the adapter, turn LE and power on
  adapter.py power 0|1|cycle   turn it off or on, or off and on at once
  adapter.py bondable 0|1      let it bond when it pairs, or not
  adapter.py wipe              have the kernel forget the keys of every bond
"""
import ctypes
import os
import socket
import struct
import sys
import time

AF_BLUETOOTH, BTPROTO_HCI, NO_DEVICE, CHANNEL_CONTROL = 31, 1, 0xFFFF, 3
COMMAND_COMPLETE, COMMAND_STATUS = 1, 2
ADDRESS = bytes.fromhex('0252454C4B01')[::-1]
INDEX_LIST, INFORMATION, SET_POWERED, SET_BONDABLE, SET_LE = 0x03, 0x04, 0x05, 0x09, 0x0D
SET_IO_CAPABILITY, SET_SECURE_CONNECTIONS = 0x18, 0x2D
LOAD_LONG_TERM_KEYS = 0x13
NO_INPUT_NO_OUTPUT = 3


class Management:
    def __init__(self):
        self.socket = socket.socket(AF_BLUETOOTH, socket.SOCK_RAW | socket.SOCK_CLOEXEC, BTPROTO_HCI)
        self.socket.settimeout(30)
        self.index = 0
        address = struct.pack('<HHH', AF_BLUETOOTH, NO_DEVICE, CHANNEL_CONTROL)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.bind(self.socket.fileno(), address, len(address)):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def __call__(self, opcode, parameters=b'', index=None):
        index = self.index if index is None else index
        self.socket.send(struct.pack('<HHH', opcode, index, len(parameters)) + parameters)
        while True:
            packet = self.socket.recv(4096)
            event, _index, _length = struct.unpack_from('<HHH', packet)
            if event in (COMMAND_COMPLETE, COMMAND_STATUS):
                answered, status = struct.unpack_from('<HB', packet, 6)
                if answered == opcode:
                    return status, packet[9:]

    def expect(self, what, opcode, parameters):
        status, _ = self(opcode, parameters)
        if status:
            sys.exit(f'adapter: {what} was refused with mgmt status 0x{status:02x}')

    def find_adapter(self):
        """Whether the adapter is there, which is the one with its address, whatever its number."""
        _, indexes = self(INDEX_LIST, index=NO_DEVICE)
        count = struct.unpack_from('<H', indexes)[0]
        for index in struct.unpack_from(f'<{count}H', indexes, 2):
            status, information = self(INFORMATION, index=index)
            if not status and information[:6] == ADDRESS:
                self.index = index
                return True
        return False


def setup(manage):
    end = time.monotonic() + 60
    while not manage.find_adapter():
        if time.monotonic() > end:
            sys.exit('adapter: none appeared in 60 s')
        time.sleep(0.1)
    manage.expect('power off', SET_POWERED, b'\0')
    manage.expect('LE', SET_LE, b'\1')
    manage.expect('secure connections', SET_SECURE_CONNECTIONS, b'\1')
    manage.expect('bonding', SET_BONDABLE, b'\1')
    manage.expect('the pairing capability', SET_IO_CAPABILITY, bytes([NO_INPUT_NO_OUTPUT]))
    manage.expect('power on', SET_POWERED, b'\1')


if __name__ == '__main__':
    match sys.argv[1:]:
        case ['setup']:
            setup(Management())
        case ['power', '0' | '1' | 'cycle' as how]:
            manage = Management()
            if not manage.find_adapter():
                sys.exit('adapter: it is not there')
            for on in '01' if how == 'cycle' else how:
                manage.expect('power', SET_POWERED, bytes([int(on)]))
        case ['bondable', '0' | '1' as on]:
            Management().expect('bondable', SET_BONDABLE, bytes([int(on)]))
        case ['wipe']:
            Management().expect('the wipe', LOAD_LONG_TERM_KEYS, bytes(2))
        case _:
            sys.exit(__doc__)
