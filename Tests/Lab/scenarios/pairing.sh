# Pairing, bonds and their loss: with the kernel alone, without privileges, and beside bluetoothd.
# Seconds: 600
. "$(dirname "$0")/common.sh"
lab_start
export RELINK_LAB_ADAPTER="$lab_python $lab_here/adapter.py"
judge 400 pairing
# The processes without privileges talk to the radio too.
chmod 666 "$RELINK_LAB_CONTROL"
ctl forget > /dev/null
judge 60 pairing --unprivileged
mkdir -p /run/dbus /var/lib/bluetooth
dbus-daemon --system --fork
/usr/libexec/bluetooth/bluetoothd > "$RELINK_LAB_OUT/bluetoothd.log" 2>&1 &
sleep 5
"$lab_python" "$lab_here/adapter.py" power 1
judge 60 pairing beside-daemon
check "the radio ends" lab_stop
summary
