# A link that has died in silence is not adopted again, with and without the privilege to end links.
# Seconds: 500
. "$(dirname "$0")/common.sh"
lab_start
judge 200 silence "${1:-10}"
# The processes without privileges talk to the radio too.
chmod 666 "$RELINK_LAB_CONTROL"
judge 200 silence "${2:-3}" --unprivileged
check "the radio ends" lab_stop
summary
