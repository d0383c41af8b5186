# A link lost between a Write Request and its response, before and after the peripheral applied it: what each tag does.
# Seconds: 1200
. "$(dirname "$0")/common.sh"
lab_start
judge 900 in-doubt
check "the radio ends" lab_stop
summary
