// An app that imports Relink can name every type that it meets: the vocabulary, and of the codec the few value types
// that the vocabulary is made of.
@_exported public import RelinkCore

@_exported public import struct BluetoothWire.ATTErrorCode
@_exported public import struct BluetoothWire.BluetoothAddress
@_exported public import struct BluetoothWire.BluetoothUUID
@_exported public import struct BluetoothWire.HCIErrorCode
@_exported public import struct BluetoothWire.SecurityKey
