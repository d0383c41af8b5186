# A busy session loses its link 200 times in eight ways: nothing hangs, nothing is lost, nothing is done twice.
# Seconds: 1200
. "$(dirname "$0")/common.sh"
# Or the kernel now and then makes one page of 2 MiB out of many small ones, and memory seems to grow by that.
echo never > /sys/kernel/mm/transparent_hugepage/enabled
lab_start
count=${1:-200}

baseline() {
  "$RELINK_LAB/baseline" 40 > "$RELINK_LAB_OUT/baseline-$1.json"
}

report() {
  local file=$RELINK_LAB_OUT/baseline-$1.json
  echo "bare socket, $1: loss seen to read answered: median $(field median_ms < "$file") ms," \
    "p90 $(field p90_ms < "$file"), max $(field max_ms < "$file"), n 40"
}

check "the bare socket comes back, before" baseline before
judge 900 losses "$count"
check "the bare socket comes back, after" baseline after
report before
report after
check "the radio ends" lab_stop
summary
