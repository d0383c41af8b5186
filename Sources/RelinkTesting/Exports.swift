// Relink exports what else of the codec a test meets.
@_exported public import struct BluetoothWire.ATTOpcode
