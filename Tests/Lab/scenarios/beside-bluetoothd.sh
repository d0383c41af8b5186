# Beside bluetoothd: it is idle, it discovers, it has the device's channel, it stops. Sessions work, say so, come back.
# Seconds: 900
. "$(dirname "$0")/common.sh"
lab_start
mkdir -p /run/dbus
dbus-daemon --system --fork

start_daemon() {
  # Before the others: it is known to have stopped only once its process is gone.
  nice -n -10 /usr/libexec/bluetooth/bluetoothd -n > "$RELINK_LAB_OUT/bluetoothd.log" 2>&1 &
  timeout 60 bash -c 'until bluetoothctl list 2> /dev/null | grep -q 02:52:45; do sleep 0.5; done' &&
    bluetoothctl power on
}

check "bluetoothd runs" start_daemon
echo "--- the adapter is left as found"
judge 300 beside-bluetoothd
check "bluetoothd runs again" start_daemon
echo "--- the adapter is kept on"
judge 200 beside-bluetoothd stopped --keep-on

check "the radio ends" lab_stop
summary
