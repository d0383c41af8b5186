# A link ended from here with a request outstanding, and dialled again at once: no answer and no prepared byte crosses.
# Seconds: 2700
. "$(dirname "$0")/common.sh"
lab_start
judge 1200 crossing "${1:-100}"
judge 1200 killing "${1:-100}"
# Without the privilege to end links they live 2 s longer; the processes talk to the radio too.
chmod 666 "$RELINK_LAB_CONTROL"
judge 200 crossing "${2:-5}" --unprivileged
judge 200 killing "${2:-5}" --unprivileged
check "the radio ends" lab_stop
summary
