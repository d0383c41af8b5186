# The adapter off and on, unplugged, blocked, asleep, links that only the host has: named, and back by itself.
# Seconds: 1500
. "$(dirname "$0")/common.sh"
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
lab_start
chmod 666 "$RELINK_LAB_CONTROL"
user="setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all"

echo "--- root"
judge 400 adapter-life
echo "--- root, and the adapter is kept on"
judge 200 adapter-life off unplugged --keep-on
echo "--- a user without capabilities"
judge_as "$user" 400 adapter-life off cycle unplugged blocked phantom
echo "--- a user without capabilities, and without the controller's events"
judge_as "$user" 200 adapter-life off --without-controller

check "the radio ends" lab_stop
summary
