"""Reads a trace of system calls and says what was on disk when a write left.

The journal's file and its log are put together again from what was written to them; what a call of fdatasync or fsync
had finished is what a loss of power would leave. SQLite then says what that is worth.

    trace.py FOLDER    with FOLDER/trace, and FOLDER/base/ as the journal was before; prints what holds, one line each
"""
import pathlib
import re
import sqlite3
import sys
import tempfile

WRITE_REQUEST, READ_REQUEST = 0x12, 0x0A
SYNCS = ('fsync', 'fdatasync')
WRITES = ('pwrite64', 'write')
LINE = re.compile(r'^(\d+) +(.*)$')
CALL = re.compile(r'^(\w+)\((.*?)(?:\) += (-?\d+).*| <unfinished \.\.\.>)$')
RESUMED = re.compile(r'^<\.\.\. (\w+) resumed>(.*?)\) += (-?\d+).*$')
DESCRIPTOR = re.compile(r'^\d+<([^>]*)>')
TEXT = re.compile(r'"((?:\\x[0-9a-f]{2})*)"')


def octets(text):
    return bytes.fromhex(text.replace('\\x', ''))


class Call:
    """A system call: where it began and ended in the trace, on which thread, about which file."""

    def __init__(self, thread, name, arguments, began):
        self.thread, self.name, self.arguments, self.began = thread, name, arguments, began
        self.ended = self.result = None
        found = DESCRIPTOR.match(arguments)
        path = found[1] if found else ''
        self.path = octets(path).decode() if '\\x' in path else path

    @property
    def data(self):
        """The bytes that are handed over."""
        found = TEXT.search(self.arguments)
        return octets(found[1]) if found else b''

    @property
    def numbers(self):
        """The numbers behind the bytes."""
        return [int(n) for n in re.findall(r', (\d+)', TEXT.sub('', self.arguments))]


def calls(path):
    """The calls in the order in which they began; a call that never ended has no result."""
    found, open_calls = [], {}
    with open(path) as lines:
        for place, line in enumerate(lines):
            parts = LINE.match(line.rstrip('\n'))
            if not parts:
                continue
            thread, text = parts.groups()
            if resumed := RESUMED.match(text):
                call = open_calls.pop(thread, None)
                if call:
                    call.arguments += resumed[2]
                    call.ended, call.result = place, int(resumed[3])
            elif begun := CALL.match(text):
                call = Call(thread, begun[1], begun[2], place)
                found.append(call)
                if begun[3] is None:
                    open_calls[thread] = call
                else:
                    call.ended, call.result = place, int(begun[3])
    return found


class Disk:
    """The files of the journal as they were written, and as they are certain to be on disk."""

    def __init__(self, base):
        self.written = {name: bytearray(read(base / name)) for name in ('journal.sqlite', 'journal.sqlite-wal')}
        self.safe = {name: bytes(content) for name, content in self.written.items()}
        self.waiting = {}

    def began(self, call):
        name = pathlib.Path(call.path).name
        if name not in self.written:
            return
        content = self.written[name]
        if call.name == 'pwrite64':
            offset = call.numbers[-1]
            content.extend(bytes(max(0, offset - len(content))))
            content[offset:offset + len(call.data)] = call.data
        elif call.name == 'ftruncate':
            del content[call.numbers[-1]:]
        elif call.name in SYNCS:
            # What is written while it runs may be missing.
            self.waiting[call] = (name, bytes(content))

    def ended(self, call):
        if call in self.waiting:
            name, content = self.waiting.pop(call)
            if call.result == 0:
                self.safe[name] = content

    def row(self, number):
        """The mark and the outcome of a command as they would be found after a loss of power at this moment."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in self.safe.items():
                if content or not name.endswith('-wal'):
                    (pathlib.Path(folder) / name).write_bytes(content)
            journal = sqlite3.connect(pathlib.Path(folder) / 'journal.sqlite')
            row = journal.execute(
                'SELECT mark, outcome FROM operations WHERE id = ?', (f'command-{number}',)).fetchone()
            journal.close()
            return row or (None, None)


def read(path):
    return path.read_bytes() if path.exists() else b''


class Trace:
    def __init__(self, folder):
        self.disk = Disk(folder / 'base')
        self.phase = None
        self.reads = {}
        self.touches = {}
        self.unmarked, self.unsettled, self.sent, self.told = [], [], [], []
        self.threads = {'sends': set(), 'synchronises': set()}
        self.example = []
        moments = []
        for call in calls(folder / 'trace'):
            moments.append((call.began, 0, call))
            if call.ended is not None:
                moments.append((call.ended, 1, call))
        for _, kind, call in sorted(moments, key=lambda moment: moment[:2]):
            (self.ended if kind else self.began)(call)

    def began(self, call):
        name = pathlib.Path(call.path).name
        self.disk.began(call)
        if name.startswith('journal.sqlite') and call.name in SYNCS + WRITES:
            self.touches[self.phase] = self.touches.get(self.phase, 0) + 1
            self.threads['synchronises'].add(call.thread)
            if call.name in WRITES:
                self.show(call, f'{call.name} {name}', len(call.data))
        elif call.name in SYNCS:
            self.touches[self.phase] = self.touches.get(self.phase, 0) + 1
        elif call.name == 'write' and name == 'ledger':
            self.noted(call, call.data.decode().split())
        elif call.name == 'sendto' and call.data:
            self.threads['sends'].add(call.thread)
            self.left(call)
        elif call.name == 'recvfrom' and call.result and call.result > 0:
            self.show(call, f'recvfrom, ATT opcode 0x{call.data[0]:02x}' if call.data else 'recvfrom')

    def ended(self, call):
        self.disk.ended(call)
        if call.name in SYNCS:
            self.show(call, f'{call.name} {pathlib.Path(call.path).name} = {call.result}')

    def noted(self, call, words):
        if words[0] == 'phase':
            self.phase = words[1]
        elif words[0] == 'told':
            number = int(words[1])
            self.show(call, f'write ledger: {" ".join(words)}')
            if self.phase == 'writes' and not self.shown():
                self.example.append(None)
            self.told.append(number)
            if self.disk.row(number)[1] is None:
                self.unsettled.append(number)

    def left(self, call):
        opcode = call.data[0]
        if opcode == READ_REQUEST:
            self.reads[self.phase] = self.reads.get(self.phase, 0) + 1
        elif opcode == WRITE_REQUEST and len(call.data) == 11:
            number = int.from_bytes(call.data[3:], 'little')
            self.show(call, f'sendto, ATT opcode 0x12, command {number}')
            self.sent.append(number)
            if self.disk.row(number)[0] is None:
                self.unmarked.append(number)

    def shown(self):
        return self.example[-1:] == [None]

    def show(self, call, text, size=None):
        """Keeps the calls around the first write, to be printed; writes to one file in a row are one line."""
        if self.phase != 'writes' or self.shown():
            return
        if size is not None and self.example and self.example[-1][:2] == (call.thread, text):
            _, _, count, total = self.example.pop()
            self.example.append((call.thread, text, count + 1, total + size))
        else:
            self.example.append((call.thread, text, 1, size))

    def lines(self):
        for thread, text, count, size in filter(None, self.example):
            yield f'        thread {thread}: {text}' + (f', {count} calls, {size} bytes' if size else '')


def main(folder):
    trace = Trace(pathlib.Path(folder))
    verdicts = []

    def check(what, holds, detail):
        verdicts.append(holds)
        print(f'ok      {what}' if holds else f'FAILED  {what}: {detail}')

    print('        the first durable write, from its call to its outcome:')
    print('\n'.join(trace.lines()))
    sent, told = len(set(trace.sent)), len(set(trace.told))
    check(f'{sent} durable non-idempotent writes left, none twice', sent == len(trace.sent) > 0, trace.sent)
    check(
        f'before each of the {sent} left, fdatasync had returned with its mark in the log',
        not trace.unmarked, f'not so for {trace.unmarked}')
    check(
        f'before each of {told} callers was told, fdatasync had returned with the outcome in the log',
        told > 0 and not trace.unsettled, f'not so for {trace.unsettled}')
    alone = trace.touches.get('reads', 0)
    check(
        f'{trace.reads.get("reads", 0)} reads alone: no fsync, no fdatasync, no write to the journal',
        alone == 0 and trace.reads.get('reads', 0) > 0, f'there were {alone}')
    beside = trace.reads.get('both', 0)
    both = trace.threads['sends'] & trace.threads['synchronises']
    check(
        f'{beside} reads beside durable writes: the thread that sends never touches the journal',
        beside > 0 and trace.threads['synchronises'] and not both, f'threads {both} do')
    print(f'{sum(verdicts)} passed, {len(verdicts) - sum(verdicts)} failed')
    return all(verdicts)


if __name__ == '__main__':
    sys.exit(0 if main(sys.argv[1]) else 1)
