import Relink
import RelinkTesting

// The types of the vocabulary can be named without a further import.
let lock = Characteristic(BluetoothUUID(0xFF01), in: BluetoothUUID(0xFF00))
print("Relink and RelinkTesting build from outside: \(lock)")
