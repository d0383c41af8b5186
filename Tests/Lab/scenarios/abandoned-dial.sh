# A kernel fault: a pending dial that is given up can wedge the device for every later one. See README.md.
# Seconds: 900
. "$(dirname "$0")/common.sh"
lab_start
# Before the wedges that the bare socket is about to cause.
judge 300 abandonment "${1:-30}"
check "a kept socket does no harm, a power cycle mends a wedge" "$lab_python" "$lab_here/abandoned.py" "${1:-30}"
check "it ends" lab_stop
summary
