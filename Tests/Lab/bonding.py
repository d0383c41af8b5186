"""How the peripheral pairs, what it keeps of that, and a characteristic that only a secured link may read."""
import asyncio

from bumble import att
from bumble.keys import MemoryKeyStore
from bumble.pairing import PairingConfig, PairingDelegate

METHODS = {
    'just-works': PairingDelegate.NO_OUTPUT_NO_INPUT,
    'comparison': PairingDelegate.DISPLAY_OUTPUT_AND_YES_NO_INPUT,
    'shows': PairingDelegate.DISPLAY_OUTPUT_ONLY,
    'types': PairingDelegate.KEYBOARD_INPUT_ONLY,
    'refuses': PairingDelegate.NO_OUTPUT_NO_INPUT,
}


class Delegate(PairingDelegate):
    """The peripheral's user."""

    def __init__(self, bonding):
        super().__init__(METHODS[bonding.method])
        self.bonding = bonding

    async def accept(self):
        self.bonding.counts['requests'] += 1
        return self.bonding.method != 'refuses'

    async def compare_numbers(self, number, digits):
        self.bonding.shown = number
        return True

    async def display_number(self, number, digits):
        self.bonding.shown = number

    async def get_number(self):
        return await self.bonding.typed


class Bonding:
    def __init__(self, device):
        self.device = device
        self.device.keystore = MemoryKeyStore()
        self.device.irk = bytes(range(1, 17))
        self.device.pairing_config_factory = self.config
        self.error = att.ATT_INSUFFICIENT_ENCRYPTION_ERROR
        self.reset()

    def reset(self):
        """Counts from zero, pairs without a word; the keys stay."""
        self.method = 'just-works'
        self.shown = None
        self.typed = None
        self.counts = {'requests': 0, 'paired': 0, 'failed': 0, 'encrypted': 0}
        self.protected = {'asked': 0, 'refused': 0, 'answered': 0, 'writes': 0}

    def config(self, _connection):
        self.shown = None
        self.typed = asyncio.get_running_loop().create_future()
        mitm = self.method not in ('just-works', 'refuses')
        return PairingConfig(sc=True, mitm=mitm, bonding=True, delegate=Delegate(self))

    def on_connection(self, connection):
        def count(name):
            self.counts[name] += 1

        connection.on('pairing', lambda _keys: count('paired'))
        connection.on('pairing_failure', lambda _reason: count('failed'))
        connection.on('connection_encryption_change', lambda: count('encrypted'))

    def type(self, number):
        """The peripheral's user types these digits."""
        self.typed.set_result(number)

    async def forget(self):
        """Every key goes; the links stay as they are."""
        self.device.smp_manager.sessions.clear()
        await self.device.keystore.delete_all()

    async def corrupt(self):
        """Every key becomes another one."""
        self.device.smp_manager.sessions.clear()
        keys = await self.device.keystore.get_all()
        for _, key in keys:
            for part in (key.ltk, key.ltk_central, key.ltk_peripheral):
                if part:
                    part.value = bytes(octet ^ 0xFF for octet in part.value)
        return len(keys)

    async def keys(self):
        return len(await self.device.keystore.get_all())

    # The characteristic

    def guard(self, connection):
        self.protected['asked'] += 1
        if not connection.is_encrypted:
            self.protected['refused'] += 1
            raise att.ATT_Error(error_code=self.error)

    def read(self, connection):
        self.guard(connection)
        self.protected['answered'] += 1
        return b'secret'

    def write(self, connection, _value):
        self.guard(connection)
        self.protected['writes'] += 1
