import BluetoothWire

let device = ManagementAddress(BluetoothAddress(0xC0DE_0000_0001), .leRandom)
let classic = ManagementAddress(device.address, .bredr)
let secretOctets = "A0A1A2A3A4A5A6A7A8A9AAABACADAEAF"
let secret = SecurityKey(hex(secretOctets))!
let longTermKey = ManagementLongTermKey(
  device: device, type: .authenticatedP256, isCentral: true, encryptionSize: 16, encryptedDiversifier: 0x1234,
  randomNumber: 0x0123_4567_89AB_CDEF, value: secret)
