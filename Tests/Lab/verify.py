#!/usr/bin/env python3
"""Shows with a naive ATT client that the radio does and counts what it claims, and that the lab can see the faults
that it exists to find: an answer on another socket, prepared bytes of another socket, a ghost of a cancelled dial."""
import ctypes
import errno
import os
import select
import socket
import struct
import sys
import time

from adapter import SET_POWERED, Management
from ctl import Control

AF_BLUETOOTH, BTPROTO_L2CAP, ATT_CID, LE_RANDOM = 31, 0, 4, 2
MGMT_DISCONNECT = 0x14
PEER = bytes.fromhex('F0F0F0F0F002')[::-1]
PATIENCE = 20
libc = ctypes.CDLL(None, use_errno=True)
control, manage = Control(), Management()
passed = failed = 0


def expect(what, found, wanted):
    global passed, failed
    good = found == wanted
    passed, failed = passed + good, failed + (not good)
    print(f'{"ok     " if good else "FAILED "} {what}: {found}' + ('' if good else f', not {wanted}'), flush=True)


def eventually(what, find, wanted):
    """As expect, for something that may take a moment on a busy machine."""
    end = time.monotonic() + PATIENCE
    while (found := find()) != wanted and time.monotonic() < end:
        time.sleep(0.05)
    expect(what, found, wanted)


def tell(command):
    reply = control(command)
    if not reply['ok']:
        raise ValueError(f'{command}: {reply["error"]}')
    return reply


class Client:
    """One ATT socket, with as little sense as a program can have."""

    def __init__(self, handles):
        self.handles = handles
        self.socket = socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK, BTPROTO_L2CAP)
        self.call('bind', bytes(6))

    def call(self, name, address):
        a = struct.pack('<HH6sHBx', AF_BLUETOOTH, 0, address, ATT_CID, LE_RANDOM)
        return ctypes.get_errno() if getattr(libc, name)(self.socket.fileno(), a, len(a)) else 0

    def dial(self):
        return self.call('connect', PEER)

    def up(self, seconds=PATIENCE):
        return bool(select.select([], [self.socket], [], seconds)[1])

    def send(self, opcode, *parts):
        self.socket.send(bytes([opcode]) + b''.join(parts))

    def receive(self, seconds=PATIENCE):
        """A PDU, or the number of the error, or None when nothing came."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return None
        try:
            return self.socket.recv(600)
        except OSError as error:
            return error.errno

    def ask(self, opcode, *parts):
        self.send(opcode, *parts)
        return self.receive()

    def at(self, name, after=0):
        return struct.pack('<H', self.handles[name] + after)

    def read(self, name):
        return self.ask(0x0A, self.at(name))

    def write(self, name, value):
        return self.ask(0x12, self.at(name), value)

    def write_number(self, name, number):
        return self.write(name, struct.pack('<Q', number))

    def command(self, name, value):
        self.send(0x52, self.at(name), value)

    def prepare(self, name, offset, part):
        return self.ask(0x16, self.at(name), struct.pack('<H', offset), part)

    def execute(self, flags=1):
        return self.ask(0x18, bytes([flags]))

    def subscribe(self, name):
        return self.ask(0x12, self.at(name, after=1), b'\x01\x00')

    def link(self):
        """The number of the link this socket is on, as the peripheral sees it."""
        return struct.unpack('<xII', self.read('counter'))[1]

    def close(self):
        self.socket.close()


def connected(handles):
    """A client on a fresh link: the old one is waited out, a dial that finds it alive is repeated."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        tell(f'wait down {PATIENCE * 1000}')
        client = Client(handles)
        dialled = client.dial()
        try:
            if dialled == errno.EINPROGRESS and client.up() and client.ask(0x02, b'\xf7\x00'):
                return client
        except OSError:
            pass  # the kernel was not done with the link before
        client.close()
        time.sleep(0.1)
    raise TimeoutError('no fresh link')


def adopt(handles):
    """A client that dials while the link of a closed socket still lives."""
    client = Client(handles)
    expect('  a dial straight after a close finds the old link', client.dial(), 0)
    return client


def counters(handles):
    print('what is written and read is counted')
    c = connected(handles)
    reads = tell('stats')['counter']['reads']
    value = struct.unpack('<xII', c.read('counter'))
    expect('  a read carries its count and its link', value, (reads + 1, tell('links')['links']))
    expect('  a write is answered', c.write('counter', b'\xaa'), b'\x13')
    c.command('counter', b'\xbb')
    c.read('counter')
    counter = tell('stats')['counter']
    expect('  writes, commands, value', (counter['writes'], counter['commands'], counter['value']), (1, 1, 'bb'))
    for number in (1, 2, 2):
        c.write_number('lock', number)
    facts = tell('stats')['lock']
    expect('  the lock counts duplicates', (facts['applied'], facts['distinct'], facts['duplicates']), (3, 2, 1))
    expect('  and says how often', tell('count lock 2')['count'], 2)
    expect('  a number of the wrong length is refused', c.write('lock', b'123')[4], 0x0D)
    c.write('idempotent', struct.pack('<Q', 9) + b'xyz')
    expect('  the idempotent value', c.read('idempotent')[9:], b'xyz')
    expect('  subscribing', c.subscribe('counter'), b'\x13')
    expect('  one subscriber', tell('notify c0ffee')['subscribers'], 1)
    expect('  the notification', c.receive()[3:], bytes.fromhex('c0ffee'))
    tell('lose 08')
    c.close()


def cuts(handles):
    print('a link is cut before and after a write is applied')
    c = connected(handles)
    tell('cut-before-apply 08 lock')
    expect('  other writes pass', c.write('counter', b'1'), b'\x13')
    expect('  the write before', c.write_number('lock', 100), errno.ETIMEDOUT)
    expect('  was not applied', tell('count lock 100')['count'], 0)
    c.close()
    c = connected(handles)
    tell('cut-after-apply 13')
    expect('  subscribing is no such write', c.subscribe('stream'), b'\x13')
    expect('  stopping it', c.ask(0x12, c.at('stream', after=1), b'\x00\x00')[:1] in (b'\x13', b'\x1b'), True)
    c.send(0x12, c.at('lock'), struct.pack('<Q', 101))
    while isinstance(end := c.receive(), bytes):
        pass
    expect('  the write after', end, errno.ECONNRESET)
    expect('  was applied once', tell('count lock 101')['count'], 1)
    c.close()
    c = connected(handles)
    before = tell('stats')['counter']['commands']
    tell('cut-after-apply 08 counter')
    c.command('counter', b'2')
    expect('  a command, too, is applied', c.receive(), errno.ETIMEDOUT)
    eventually('  and counted', lambda: tell('stats')['counter']['commands'], before + 1)
    c.close()
    c = connected(handles)
    tell('hold-answers applied lock')
    c.send(0x12, c.at('lock'), struct.pack('<Q', 102))
    expect('  a withheld answer does not come', c.receive(0.5), None)
    eventually('  though the write was applied', lambda: tell('count lock 102')['count'], 1)
    tell('hold-answers discarded lock')
    c.send(0x12, c.at('lock'), struct.pack('<Q', 103))
    expect('  a discarded request has no answer', c.receive(0.5), None)
    expect('  and was not applied', tell('count lock 103')['count'], 0)
    tell('hold-answers off')
    expect('  then all is as before', c.write_number('lock', 104), b'\x13')
    tell('lose 22')
    c.close()


def crossing(handles):
    print('what a closed socket left behind is seen')
    tell('slow hold')
    c = connected(handles)
    link = c.link()
    c.send(0x0A, c.at('slow'))
    while not tell('stats')['slow']['waiting']:
        time.sleep(0.01)
    c.close()
    c = adopt(handles)
    tell('release')
    expect('  the old answer comes on the new socket', struct.unpack_from('<xI', c.receive())[0], link)
    expect('  a part is prepared', c.prepare('long', 0, b'old')[:1], b'\x17')
    c.close()
    c = adopt(handles)
    expect('  the new socket executes', c.execute(), b'\x19')
    done = tell('stats')['long']
    expect('  what the old one prepared', done['executions'][-1:], [{'link': link, 'bytes': 3, 'value': b'old'.hex()}])
    c.prepare('long', 0, b'more')
    expect('  a cancelled queue', c.execute(flags=0), b'\x19')
    expect('  is counted', tell('stats')['long']['cancelled_bytes'], 4)
    late = tell('stats')['late']
    c.prepare('long', 0, b'lost!')
    c.send(0x0A, c.at('slow'))
    while not tell('stats')['slow']['waiting']:
        time.sleep(0.01)
    c.close()
    c = connected(handles)
    expect('  on a fresh link the number differs', c.link(), link + 1)
    expect('  nothing is left to execute', (c.execute(), c.read('long')), (b'\x19', b'\x0bold'))
    stats = tell('stats')
    expect('  the queue died with its link', stats['long']['died_bytes'], 5)
    expect('  the answer too', (stats['late'], stats['slow']['waiting'], tell('release')['released']), (late + 1, 0, 0))
    tell('slow 100')
    expect('  a slow read is answered in time', struct.unpack_from('<xI', c.read('slow'))[0], link + 1)
    tell('lose 08')
    c.close()


def silence(handles):
    print('silence')
    c = connected(handles)
    tell('silence link')
    c.send(0x0A, c.at('counter'))
    expect('  a dead link answers nothing', c.receive(0.5), None)
    c.close()
    c = adopt(handles)
    c.send(0x0A, c.at('counter'))
    expect('  nor does it to a socket that adopts it', c.receive(0.5), None)
    tell('lose 08')
    c.close()
    c = connected(handles)
    expect('  the next link does', c.read('counter')[:1], b'\x0b')
    tell('silence 1')
    c.send(0x0A, c.at('counter'))
    expect('  a silent air lets nothing through', c.receive(0.5), None)
    tell('silence 0')
    expect('  until it ends', c.read('counter')[:1], b'\x0b')
    tell('lose 08')
    c.close()


def advertising(handles):
    print('advertising')
    tell('advertise 0')
    links = tell('links')['links']
    c = Client(handles)
    expect('  a dial pends', c.dial(), errno.EINPROGRESS)
    expect('  while nobody advertises', c.up(1), False)
    tell('advertise 1')
    expect('  and completes when somebody does', c.up(), True)
    c.ask(0x02, b'\xf7\x00')
    tell('advertise 0')
    tell('lose 3e')
    c.close()
    expect('  off stays off after a loss', tell('stats')['advertising'], False)
    c = Client(handles)
    c.dial()
    c.up(0.3)
    c.close()
    tell('advertise 1')
    time.sleep(1)
    expect('  a dial that was given up leaves no ghost', tell('links')['links'], links + 1)


def local_ends(handles):
    print('links that end on this side')
    c = connected(handles)
    gone = tell('stats')['gone'].get('13', 0)
    expect('  mgmt Disconnect', manage(MGMT_DISCONNECT, PEER + bytes([LE_RANDOM]))[0], 0)
    expect('  is an abort here', c.receive(), errno.ECONNABORTED)
    tell(f'wait down {PATIENCE * 1000}')
    eventually('  and the user over there', lambda: tell('stats')['gone'].get('13', 0), gone + 1)
    c.close()
    c = connected(handles)
    expect('  the adapter off', manage(SET_POWERED, b'\0')[0], 0)
    expect('  ends the link', c.receive() in (errno.ECONNABORTED, errno.ECONNRESET), True)
    c.close()
    expect('  and the adapter on', manage(SET_POWERED, b'\1')[0], 0)
    c = connected(handles)
    expect('  brings it back', c.read('counter')[:1], b'\x0b')
    tell('lose 08')
    c.close()


def stream(handles):
    print('the stream')
    tell('stream 50')
    numbers = []
    for _ in range(2):
        c = connected(handles)
        c.subscribe('stream')
        numbers += [struct.unpack('<xHI', c.receive()[:7])[1] for _ in range(5)]
        tell('lose 08')
        c.close()
    expect('  ascends over a loss', numbers == sorted(set(numbers)), True)
    expect('  is ended by it', tell('stats')['stream']['subscribed'], 0)
    tell('reset')
    expect('  reset counts from zero', tell('stats')['counter']['reads'], 0)


if __name__ == '__main__':
    values = tell('handles')['handles']
    parts = (counters, cuts, crossing, silence, advertising, local_ends, stream)
    for part in parts if not sys.argv[1:] else [p for p in parts if p.__name__ in sys.argv]:
        try:
            part(values)
        except (OSError, ValueError, TypeError, struct.error) as error:
            expect(f'  {part.__name__} runs to its end', repr(error), None)
            tell('reset')
            tell('advertise 1')
            tell('lose 08')
    print(f'{passed} passed, {failed} failed')
    sys.exit(failed != 0)
