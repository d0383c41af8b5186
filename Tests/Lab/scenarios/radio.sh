# The radio does and counts what it claims, and the lab sees the faults that it is there to find.
# Seconds: 400
. "$(dirname "$0")/common.sh"
lab_start
check "the radio keeps its promises" "$lab_python" "$lab_here/verify.py"
check "it ends" lab_stop
summary
