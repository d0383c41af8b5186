"""A peripheral that counts: what it was asked, what it applied, how often, and on which link.

A *link* is an ACL link, numbered from 1 in the order in which they came up. Every value that is read carries the
number of the link on which the request arrived, so that an answer that reaches another link is recognised.
"""
import asyncio
import contextvars
import dataclasses
import os
import struct

from bumble import att
from bumble.core import UUID, AdvertisingData
from bumble.device import Device
from bumble.gatt import Characteristic, CharacteristicValue, Service
from bumble.hci import Address
from bumble.host import Host

from bonding import Bonding

ADDRESS = 'F0:F0:F0:F0:F0:02'


def uuid(number):
    return f'{number:08X}-7A3C-4D0B-9C41-52454C494E4B'


SERVICE = uuid(1)
NAMES = {'counter': 2, 'lock': 3, 'idempotent': 4, 'slow': 5, 'long': 6, 'stream': 7, 'value': 8, 'protected': 9}
MTU = 517
WRITES = (att.ATT_Write_Request, att.ATT_Write_Command, att.ATT_Execute_Write_Request)


@dataclasses.dataclass
class Cut:
    """The link is to be lost around the next write: before it is applied, or after, without an answer."""

    before: bool
    reason: int
    name: str | None


@dataclasses.dataclass
class Fate:
    """What becomes of one request: its answer may be withheld, or replaced by the loss of the link."""

    pdu: att.ATT_PDU
    withheld: bool = False
    cut: int | None = None
    twice: bool = False
    late_ms: int | None = None


FATE = contextvars.ContextVar('fate', default=None)


class Applied:
    """How often each operation number was applied, and on which links."""

    def __init__(self):
        self.links = {}

    def add(self, number, link):
        self.links.setdefault(number, []).append(link)

    def facts(self):
        total = sum(map(len, self.links.values()))
        return {'applied': total, 'distinct': len(self.links), 'duplicates': total - len(self.links)}


class Peripheral:
    def __init__(self, air, controller, interval):
        host = Host()
        host.controller = controller
        self.air = air
        self.controller = controller
        self.device = Device(name='relink lab', address=Address(ADDRESS), host=host)
        self.device.advertising_data = bytes(AdvertisingData([
            (AdvertisingData.FLAGS, bytes([0x06])),
            (AdvertisingData.COMPLETE_LIST_OF_128_BIT_SERVICE_CLASS_UUIDS, bytes(UUID(SERVICE))),
        ]))
        self.device.scan_response_data = bytes(AdvertisingData([
            (AdvertisingData.COMPLETE_LOCAL_NAME, b'relink lab')]))
        self.interval = interval
        self.advertising = False
        self.links = 0
        self.live = {}
        self.changed = []
        self.slow_waiting = {}
        self.sequence = 0
        self.memory = None
        self.bonding = Bonding(self.device)
        self.reset()
        self.add_service()
        self.intercept()
        self.device.on('connection', self.on_connection)

    def reset(self):
        """Counts from zero again and takes back every fault; link and sequence numbers go on."""
        self.counter = {'reads': 0, 'writes': 0, 'commands': 0, 'notified': 0, 'value': ''}
        self.lock = Applied()
        self.idempotent = Applied()
        self.last_lock = b''
        self.last_idempotent = b''
        self.slow = {'asked': 0, 'answered': 0, 'discarded': 0}
        self.long = {'prepared_bytes': 0, 'executed_bytes': 0, 'cancelled_bytes': 0, 'died_bytes': 0}
        self.long_value = b''
        self.executions = []
        self.value = b''
        self.written = []
        self.raw = None
        self.stream = {'sent': 0}
        self.bonding.reset()
        self.gone = {}
        self.requests = self.cuts = self.withheld = self.discarded = self.late = 0
        self.cut = None
        self.hold = None
        self.next = None
        self.slow_ms = 1000
        self.stream_ms = 100
        self.device.gatt_server.max_mtu = MTU
        self.air.silent = False
        self.air.dropped = 0

    def add_service(self):
        p, a = Characteristic.Properties, Characteristic
        kinds = {
            'counter': (p.READ | p.WRITE | p.WRITE_WITHOUT_RESPONSE | p.NOTIFY, self.read_counter, self.write_counter),
            'lock': (p.READ | p.WRITE, lambda _: self.last_lock, self.write_lock),
            'idempotent': (p.READ | p.WRITE, lambda _: self.last_idempotent, self.write_idempotent),
            'slow': (p.READ, self.read_slow, None),
            'long': (p.READ | p.WRITE, lambda _: self.long_value, self.write_long),
            'stream': (p.NOTIFY, None, None),
            'value': (
                p.READ | p.WRITE | p.WRITE_WITHOUT_RESPONSE | p.NOTIFY, lambda _: self.value, self.write_value),
            'protected': (p.READ | p.WRITE, self.bonding.read, self.bonding.write),
        }
        self.characteristics = {}
        for name, (properties, read, write) in kinds.items():
            permissions = (a.READABLE if read else 0) | (a.WRITEABLE if write else 0)
            self.characteristics[name] = Characteristic(
                uuid(NAMES[name]), properties, permissions, CharacteristicValue(read=read, write=write))
        self.device.add_service(Service(SERVICE, list(self.characteristics.values())))
        self.names = {c.handle: name for name, c in self.characteristics.items()}

    async def start(self):
        await self.device.power_on()
        # The emulated advertiser takes the interval's HCI units (0.625 ms) for milliseconds.
        interval = self.interval * 0.625
        await self.device.start_advertising(
            auto_restart=False, advertising_interval_min=interval, advertising_interval_max=interval)
        self.advertiser = self.device.legacy_advertiser
        self.advertising = True

    def advertise(self, on):
        """Turned on, it goes on after every loss by itself."""
        self.advertising = on
        if on and not self.live:
            self.controller.le_legacy_advertiser.start()
        elif not on:
            self.controller.le_legacy_advertiser.stop()

    # Links

    def on_connection(self, connection):
        # The device forgets its advertiser at each connection; we start the controller's again ourselves.
        self.device.legacy_advertiser = self.advertiser
        self.links += 1
        connection.number = self.links
        self.live[self.links] = connection
        self.bonding.on_connection(connection)
        connection.on('disconnection', lambda reason: self.on_disconnection(connection, reason))
        self.poke()

    def on_disconnection(self, connection, reason):
        del self.live[connection.number]
        self.gone[f'{reason:02x}'] = self.gone.get(f'{reason:02x}', 0) + 1
        self.long['died_bytes'] += self.queued(connection)
        for answer, link in list(self.slow_waiting.values()):
            if link == connection.number and not answer.done():
                answer.set_result(None)
        if self.advertising:
            self.controller.le_legacy_advertiser.start()
        self.poke()

    def poke(self):
        waiting, self.changed = self.changed, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, condition, seconds):
        """Whether the condition on the links came true in time."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    future = asyncio.get_running_loop().create_future()
                    self.changed.append(future)
                    await future
        except TimeoutError:
            return False
        return True

    async def terminate(self, reason):
        """The peripheral ends its links."""
        connections = list(self.live.values())
        for connection in connections:
            await connection.disconnect(reason)
        return len(connections)

    # Requests and answers

    def intercept(self):
        server = self.device.gatt_server
        self.deliver, server.on_gatt_pdu = server.on_gatt_pdu, self.received
        self.device.l2cap_channel_manager.register_fixed_channel(att.ATT_CID, self.arrived)
        self.send_response, server.send_response = server.send_response, self.respond

    def arrived(self, handle, pdu):
        if self.raw is None:
            self.device.on_gatt_pdu(handle, pdu)
        else:
            self.raw.append(pdu.hex())

    def send_raw(self, pdu):
        for connection in self.live.values():
            self.device.send_l2cap_pdu(connection.handle, att.ATT_CID, pdu)

    def received(self, connection, pdu):
        request = pdu.op_code in att.ATT_REQUESTS
        self.requests += request
        if isinstance(pdu, att.ATT_Execute_Write_Request):
            name = 'long'
        else:
            name = self.names.get(getattr(pdu, 'attribute_handle', None))
        names = (None, name, 'execute') if isinstance(pdu, att.ATT_Execute_Write_Request) else (None, name)
        fate = Fate(pdu)
        if self.cut and isinstance(pdu, WRITES) and name and self.cut.name in names:
            cut, self.cut = self.cut, None
            self.cuts += 1
            if cut.before:
                self.air.lose(cut.reason)
                return
            fate.cut = cut.reason
        elif self.hold and request and self.hold[1] in names:
            if self.hold[0] == 'discarded':
                self.discarded += 1
                return
            fate.withheld = True
        elif self.next and request and self.next[1] in names:
            how, self.next = self.next[0], None
            if how == 'swallow':
                self.discarded += 1
                return
            fate.twice = how == 'twice'
            fate.late_ms = how if isinstance(how, int) else None
        if isinstance(pdu, att.ATT_Write_Request) and not self.may_write(pdu.attribute_handle):
            # The original carries it out.
            self.send_response(connection, att.ATT_Error_Response(
                request_opcode_in_error=pdu.op_code, attribute_handle_in_error=pdu.attribute_handle,
                error_code=att.ATT_WRITE_NOT_PERMITTED_ERROR))
            return
        queued = self.queued(connection)
        token = FATE.set(fate)
        try:
            self.deliver(connection, pdu)
        finally:
            FATE.reset(token)
        if isinstance(pdu, att.ATT_Prepare_Write_Request):
            self.long['prepared_bytes'] += self.queued(connection) - queued
        elif isinstance(pdu, att.ATT_Execute_Write_Request) and pdu.flags == 0:
            self.long['cancelled_bytes'] += queued
        if fate.cut is not None and isinstance(pdu, att.ATT_Write_Command):
            # The command is carried out in a task that is already scheduled.
            asyncio.get_running_loop().call_soon(self.air.lose, fate.cut)

    def may_write(self, handle):
        """Whether an attribute takes writes; one that is not there gets its error elsewhere."""
        attribute = self.device.gatt_server.get_attribute(handle)
        return attribute is None or attribute.permissions & att.Attribute.WRITEABLE

    def respond(self, connection, response):
        # The context of the task that carries the request out says which one it was.
        fate = FATE.get()
        if self.live.get(connection.number) is not connection:
            self.late += 1  # its link is gone; the handle may be another link's by now
        elif fate and fate.cut is not None:
            self.air.lose(fate.cut)
        elif fate and fate.withheld:
            self.withheld += 1
        elif fate and fate.late_ms is not None:
            late_ms, fate.late_ms = fate.late_ms, None
            asyncio.get_running_loop().call_later(late_ms / 1000, self.respond, connection, response)
        else:
            self.send_response(connection, response)
            if fate and fate.twice:
                self.send_response(connection, response)

    # Characteristics

    def read_counter(self, connection):
        self.counter['reads'] += 1
        return struct.pack('<II', self.counter['reads'], connection.number)

    def write_counter(self, _connection, value):
        command = isinstance(FATE.get().pdu, att.ATT_Write_Command)
        self.counter['commands' if command else 'writes'] += 1
        self.counter['value'] = value.hex()

    def write_lock(self, connection, value):
        self.apply('lock', self.number(value, exact=True), connection.number, value)

    def write_idempotent(self, connection, value):
        self.apply('idempotent', self.number(value, exact=False), connection.number, value)

    def apply(self, name, number, link, value):
        if self.memory is not None:
            # Before the answer, in one system call: whatever ends this process, what it did is known.
            os.write(self.memory, f'{name} {number} {link} {value.hex()}\n'.encode())
        getattr(self, name).add(number, link)
        setattr(self, f'last_{name}', value)

    def remember(self, path):
        """Goes on from what the file says was applied, and writes down there what is from now on."""
        if os.path.exists(path):
            with open(path) as lines:
                for line in lines:
                    name, number, link, value = line.split()
                    getattr(self, name).add(int(number), int(link))
                    setattr(self, f'last_{name}', bytes.fromhex(value))
                    self.links = max(self.links, int(link))
        self.memory = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def number(self, value, exact):
        if len(value) < 8 or (exact and len(value) != 8):
            raise att.ATT_Error(error_code=att.ATT_INVALID_ATTRIBUTE_LENGTH_ERROR)
        return int.from_bytes(value[:8], 'little')

    async def read_slow(self, connection):
        self.slow['asked'] += 1
        asked, loop = self.slow['asked'], asyncio.get_running_loop()
        answer = loop.create_future()
        self.slow_waiting[asked] = answer, connection.number
        if self.slow_ms is not None:
            loop.call_later(self.slow_ms / 1000, lambda: answer.done() or answer.set_result(None))
        await answer
        del self.slow_waiting[asked]
        self.slow['answered' if connection.number in self.live else 'discarded'] += 1
        return struct.pack('<II', connection.number, asked)

    def release(self):
        """Answers every slow read that waits; how many."""
        waiting = [answer for answer, _ in self.slow_waiting.values() if not answer.done()]
        for answer in waiting:
            answer.set_result(None)
        return len(waiting)

    def write_long(self, connection, value):
        self.long_value = value
        if isinstance(FATE.get().pdu, att.ATT_Execute_Write_Request):
            self.long['executed_bytes'] += len(value)
            self.executions.append({'link': connection.number, 'bytes': len(value), 'value': value.hex()})
            del self.executions[:-16]

    def write_value(self, _connection, value):
        if len(value) > 512:
            raise att.ATT_Error(error_code=att.ATT_INVALID_ATTRIBUTE_LENGTH_ERROR)
        self.value = value
        self.written.append(value.hex())

    def queued(self, connection):
        parts = self.device.gatt_server.prepared_writes.get(connection, [])
        return sum(len(part) for _handle, _offset, part in parts)

    def subscribed(self, name):
        handle, subscribers = self.characteristics[name].handle, self.device.gatt_server.subscribers
        return [c for c, values in subscribers.items() if values.get(handle, b'\0')[0] & 1]

    async def notify(self, name, value):
        """Notifies every subscriber; how many."""
        connections = self.subscribed(name)
        for connection in connections:
            await self.device.gatt_server.notify_subscriber(connection, self.characteristics[name], value)
        self.counter['notified'] += len(connections) if name == 'counter' else 0
        return len(connections)

    async def run_stream(self):
        while True:
            await asyncio.sleep((self.stream_ms or 100) / 1000)
            for connection in self.subscribed('stream') if self.stream_ms else []:
                self.sequence += 1
                self.stream['sent'] += 1
                await self.device.gatt_server.notify_subscriber(
                    connection, self.characteristics['stream'],
                    struct.pack('<II', self.sequence & 0xFFFFFFFF, connection.number))

    def stats(self):
        return {
            'links': self.links,
            'live': list(self.live),
            'advertising': self.controller.le_legacy_advertiser.enabled,
            'gone': self.gone,
            'requests': self.requests,
            'cuts': self.cuts,
            'withheld': self.withheld,
            'discarded': self.discarded,
            'late': self.late,
            'dropped_packets': self.air.dropped,
            'counter': self.counter | {'subscribed': len(self.subscribed('counter'))},
            'lock': self.lock.facts() | {'last': self.last_lock.hex()},
            'idempotent': self.idempotent.facts() | {'last': self.last_idempotent.hex()},
            'pairing': self.bonding.counts,
            'protected': self.bonding.protected,
            'slow': self.slow | {'waiting': len(self.slow_waiting)},
            'long': self.long | {
                'queued_bytes': {n: self.queued(c) for n, c in self.live.items() if self.queued(c)},
                'executions': self.executions,
                'value': self.long_value.hex(),
            },
            'stream': self.stream | {
                'last': self.sequence & 0xFFFFFFFF, 'subscribed': len(self.subscribed('stream'))},
        }
