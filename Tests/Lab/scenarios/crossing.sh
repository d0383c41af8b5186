# A link ended from here with a request outstanding, and dialled again at once: no answer and no prepared byte crosses.
# Seconds: 1500
. "$(dirname "$0")/common.sh"
lab_start
judge 700 crossing "${1:-100}"
judge 700 killing "${1:-100}"
check "the radio ends" lab_stop
summary
