#!/usr/bin/env python3
"""What happens to the next dial when one is given up while it is pending: abandoned.py [DIALS]

Each dial is given up 0 to 56 ms after it began, when the peripheral's advertisement is just arriving. First the
socket is closed at once; then, for comparison, it is kept until the dial has ended by itself, and closed then. Prints
one line of JSON for each way. Exit status 0 if keeping the socket never harmed, and each harm done by closing it was
mended by turning the adapter off and on.
"""
import errno
import json
import subprocess
import sys
import time

from adapter import SET_POWERED
from verify import LE_RANDOM, MGMT_DISCONNECT, PATIENCE, PEER, Client, manage, tell

SOUND, STALLED = 2.5, 12


def known_links():
    """The links that the kernel lists."""
    listing = subprocess.run(['hcitool', 'con'], capture_output=True, text=True, check=True).stdout
    return listing.splitlines()[1:]


def settle():
    end = time.monotonic() + PATIENCE
    while known_links() and time.monotonic() < end:
        time.sleep(0.05)


def answered(handles, seconds):
    """How long it took until a new dial led to an answer; None when it did not in that time."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        client = Client(handles)
        try:
            dialled = client.dial()
            if dialled in (0, errno.EINPROGRESS) and client.up(seconds - passed) and client.ask(0x02, b'\xf7\x00'):
                return time.monotonic() - began
        except OSError:
            time.sleep(0.05)
        finally:
            client.close()
    return None


def end_link():
    manage(MGMT_DISCONNECT, PEER + bytes([LE_RANDOM]))
    settle()


def measure(handles, dials, keep):
    facts = {'socket': 'kept' if keep else 'closed', 'dials': dials, 'sound': 0, 'stalled': 0, 'wedged': 0,
             'listed': 0, 'mended': 0}
    for dial in range(dials):
        client = Client(handles)
        client.dial()
        client.up(dial % 15 * 0.004)
        if keep:
            client.up()
        client.close()
        took = answered(handles, STALLED)
        if took is None:
            facts['wedged'] += 1
            facts['listed'] += bool(known_links())
            manage(SET_POWERED, b'\0')
            manage(SET_POWERED, b'\1')
            facts['mended'] += answered(handles, STALLED) is not None
        else:
            facts['sound' if took < SOUND else 'stalled'] += 1
        end_link()
    print(json.dumps(facts), flush=True)
    return facts


if __name__ == '__main__':
    count = int(sys.argv[1]) if sys.argv[1:] else 30
    values = tell('handles')['handles']
    closed, kept = measure(values, count, keep=False), measure(values, count, keep=True)
    sys.exit(kept['wedged'] != 0 or closed['mended'] != closed['wedged'])
