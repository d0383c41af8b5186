"""A radio for the Linux kernel: the host's controller on /dev/vhci, and a peripheral that counts.

Started with the path of a Unix stream socket, on which every line is a command and gets one line of JSON back:
{"ok": true, …} or {"ok": false, "error": "…"}. HH is an HCI reason in hexadecimal, NAME a characteristic, or `execute`
for the request that executes prepared writes.

  terminate HH                     the peripheral ends its links
  lose HH                          both controllers report the links lost
  silence 0|1|link                 1: no ACL packet arrives any more; link: none on the links of now; 0: as before
  advertise 0|1                    off, or on and again by itself after each loss
  cut-before-apply HH [NAME]       the next write is not applied; the link is lost instead
  cut-after-apply HH [NAME]        the next write is applied; the link is lost instead of an answer
  hold-answers off|applied|discarded [NAME]   requests are carried out (or not), and not answered
  next swallow|twice|MS [NAME]     the next request is dropped, answered twice, or answered MS late
  set HEX | written                the value of `value`, without a word | what was written to it, in order
  raw on|off                       no server: what arrives on the ATT channel is only kept
  raw arrived | raw send HEX       what was kept, in order | any PDU on the links of now
  behave                           takes back every cut, hold and next
  mtu N                            the largest MTU that the peripheral agrees to, on links to come
  slow MS|hold                     when a read of `slow` is answered; hold: on release
  release                          answer the reads of `slow` that wait
  stream MS                        the interval of `stream`; 0 pauses it
  notify HEX [NAME]                notify the subscribers (of `counter`)
  wait up|down MS                  wait for a link, or for none
  wait links N MS                  wait until N links have come up altogether
  links | stats | reset            link numbers; every counter; counters to zero and faults off
  count NAME N | counts NAME       the links on which an operation number of `lock` or `idempotent` was applied
  pairing METHOD                   how the peripheral pairs: just-works, comparison, shows, types, refuses
  type N | shown                   its user types six digits | the digits that it shows
  forget | corrupt | keys          every key goes | becomes another one | how many it has
  protect 05|0f                    the ATT error of `protected` on a link that is not encrypted
  remember PATH                    goes on from what was applied before the radio ended, and keeps that file
  handles                          the handle of each characteristic's value
  power 0|1|cycle | setup          the host's adapter off, on, off and on at once | made ready as at the start
  unplug | plug [behind]           the host's controller goes | comes back, behind another one under another number
  block 0|1 | sleep 0|1            rfkill for Bluetooth | the host is going to sleep, as the kernel of the adapter sees it
  forget-links                     the host's controller forgets its links without a word, and the peripheral loses them
  quit
"""
import asyncio
import json
import logging
import os
import sys

from bumble.transport import open_transport

from air import Air, LabController
from bonding import METHODS
from peripheral import ADDRESS, NAMES, SERVICE, Cut, Peripheral, uuid

INTERVAL_MS = 20
HOST_ADDRESS = '02:52:45:4C:4B:01'
OTHER_ADDRESS = '02:52:45:4C:4B:99'
HERE = os.path.dirname(os.path.abspath(__file__))


async def run(*words):
    """Runs a program that needs this one's answers meanwhile."""
    process = await asyncio.create_subprocess_exec(*words)
    if status := await process.wait():
        raise ValueError(f'{" ".join(words)} ended with status {status}')


class Wire:
    """The way to the host. What a controller says while its adapter is off is lost, and ends nothing.

    The kernel refuses it with an error, after which a pipe of asyncio closes itself, and the controller would be gone.
    """

    def __init__(self, transport):
        self.descriptor = transport.sink.transport.get_extra_info('pipe').fileno()

    def on_packet(self, packet):
        try:
            os.write(self.descriptor, packet)
        except OSError as error:
            logging.info('the host took no packet: %s', error)


class Radio:
    def __init__(self):
        self.air = Air()
        self.host_side = self.other_side = None
        self.transports = []
        self.peripheral = Peripheral(self.air, LabController('peripheral', link=self.air), INTERVAL_MS)
        self.ended = asyncio.Event()

    async def plug(self, behind=False):
        """The host gets a controller; with another one before it, which takes the first free number."""
        if behind:
            self.other_side = await self.controller('other', Air(), OTHER_ADDRESS)
            await asyncio.sleep(1)
        self.host_side = await self.controller('host', self.air, HOST_ADDRESS)

    async def controller(self, name, link, address):
        transport = await open_transport('vhci')
        self.transports.append(transport)
        return LabController(
            name, host_source=transport.source, host_sink=Wire(transport), link=link, public_address=address)

    async def unplug(self):
        """Every controller of the host goes, and with it the links that it had."""
        if self.host_side:
            self.air.drop(self.host_side)
            self.air.remove_controller(self.host_side)
        self.host_side = self.other_side = None
        transports, self.transports = self.transports, []
        for transport in transports:
            await transport.close()

    def name(self, rest):
        match rest:
            case []:
                return None
            case [name] if name in NAMES or name == 'execute':
                return name
        raise ValueError(f'no characteristic {" ".join(rest)}')

    async def obey(self, words):
        p = self.peripheral
        match words:
            case ['terminate', reason]:
                return {'lost': await p.terminate(int(reason, 16)), 'links': p.links}
            case ['lose', reason]:
                return {'lost': self.air.lose(int(reason, 16)), 'links': p.links}
            case ['silence', 'link']:
                self.air.silence_links()
                return {}
            case ['silence', '0' | '1' as on]:
                self.air.silent = on == '1'
                return {}
            case ['advertise', '0' | '1' as on]:
                p.advertise(on == '1')
                return {}
            case ['cut-before-apply' | 'cut-after-apply' as when, reason, *rest]:
                p.cut = Cut(when == 'cut-before-apply', int(reason, 16), self.name(rest))
                return {}
            case ['hold-answers', 'off']:
                p.hold = None
                return {}
            case ['hold-answers', 'applied' | 'discarded' as how, *rest]:
                p.hold = how, self.name(rest)
                return {}
            case ['next', 'swallow' | 'twice' as how, *rest]:
                p.next = how, self.name(rest)
                return {}
            case ['next', milliseconds, *rest]:
                p.next = int(milliseconds), self.name(rest)
                return {}
            case ['behave']:
                p.hold = p.cut = p.next = None
                return {}
            case ['set', *value]:
                p.value = bytes.fromhex(''.join(value))
                return {}
            case ['written']:
                return {'values': p.written}
            case ['raw', 'on']:
                p.raw = []
                return {}
            case ['raw', 'off']:
                p.raw = None
                return {}
            case ['raw', 'arrived']:
                return {'values': p.raw}
            case ['raw', 'send', pdu]:
                p.send_raw(bytes.fromhex(pdu))
                return {}
            case ['mtu', size]:
                p.device.gatt_server.max_mtu = int(size)
                return {}
            case ['slow', 'hold']:
                p.slow_ms = None
                return {}
            case ['slow', milliseconds]:
                p.slow_ms = int(milliseconds)
                return {}
            case ['release']:
                return {'released': p.release()}
            case ['stream', milliseconds]:
                p.stream_ms = int(milliseconds)
                return {}
            case ['notify', value, *rest]:
                return {'subscribers': await p.notify(self.name(rest) or 'counter', bytes.fromhex(value))}
            case ['wait', 'up', milliseconds]:
                return await self.wait(lambda: p.live, milliseconds)
            case ['wait', 'down', milliseconds]:
                return await self.wait(lambda: not p.live, milliseconds)
            case ['wait', 'links', number, milliseconds]:
                return await self.wait(lambda: p.links >= int(number), milliseconds)
            case ['links']:
                return {'links': p.links, 'live': list(p.live)}
            case ['stats']:
                return p.stats()
            case ['reset']:
                p.reset()
                return {}
            case ['count', 'lock' | 'idempotent' as name, number]:
                links = getattr(p, name).links.get(int(number), [])
                return {'count': len(links), 'links': links}
            case ['counts', 'lock' | 'idempotent' as name]:
                return {'counts': getattr(p, name).links}
            case ['pairing', method] if method in METHODS:
                p.bonding.method = method
                return {}
            case ['type', number]:
                p.bonding.type(int(number))
                return {}
            case ['shown']:
                return {'number': p.bonding.shown}
            case ['forget']:
                await p.bonding.forget()
                return {}
            case ['corrupt']:
                return {'keys': await p.bonding.corrupt()}
            case ['keys']:
                return {'keys': await p.bonding.keys()}
            case ['protect', '05' | '0f' as error]:
                p.bonding.error = int(error, 16)
                return {}
            case ['remember', path]:
                p.remember(path)
                return {}
            case ['handles']:
                return {
                    'address': ADDRESS,
                    'service': SERVICE,
                    'handles': {name: c.handle for name, c in p.characteristics.items()},
                    'uuids': {name: uuid(number) for name, number in NAMES.items()},
                }
            case ['power', '0' | '1' | 'cycle'] | ['setup']:
                await run(sys.executable, f'{HERE}/adapter.py', *words)
                return {}
            case ['unplug']:
                await self.unplug()
                return {}
            case ['plug', *rest] if rest in ([], ['behind']):
                await self.plug(behind=bool(rest))
                return {}
            case ['block', '0' | '1' as on]:
                await run('sh', '-c', f"""
                    for switch in /sys/class/rfkill/*; do
                      if [ "$(cat $switch/type)" = bluetooth ]; then echo {on} > $switch/soft; fi
                    done""")
                return {}
            case ['sleep', '0' | '1' as on]:
                word = 'Y' if on == '1' else 'N'
                await run('sh', '-c', f'echo {word} > $(ls /sys/kernel/debug/bluetooth/hci*/force_suspend)')
                return {}
            case ['forget-links']:
                self.air.drop(self.host_side)
                return {}
            case ['quit']:
                self.ended.set()
                return {}
        raise ValueError('unknown command: ' + ' '.join(words))

    async def wait(self, condition, milliseconds):
        if not await self.peripheral.wait(condition, int(milliseconds) / 1000):
            raise ValueError('the time was up')
        return {'links': self.peripheral.links, 'live': list(self.peripheral.live)}

    async def serve(self, reader, writer):
        try:
            while line := await reader.readline():
                try:
                    reply = {'ok': True} | await self.obey(line.decode().split())
                except Exception as error:
                    reply = {'ok': False, 'error': f'{type(error).__name__}: {error}'}
                writer.write(json.dumps(reply).encode() + b'\n')
                await writer.drain()
        except ConnectionError:
            logging.info('a control client went away')
        finally:
            writer.close()


async def main(path):
    radio = Radio()
    await radio.plug()
    try:
        await radio.peripheral.start()
        stream = asyncio.create_task(radio.peripheral.run_stream())
        if os.path.exists(path):
            os.unlink(path)
        async with await asyncio.start_unix_server(radio.serve, path):
            print('ready', flush=True)
            await radio.ended.wait()
        stream.cancel()
    finally:
        await radio.unplug()


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    logging.basicConfig(level='WARNING', format='%(asctime)s %(name)s %(message)s')
    asyncio.run(main(sys.argv[1]))
