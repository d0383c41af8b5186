# `relink watch` holds a session over the kernel's Bluetooth: events, reads and values, through a loss.
# Seconds: 170
. "$(dirname "$0")/common.sh"
program=$(dirname "$RELINK_LAB_BINARY")/relink
log=$RELINK_LAB_OUT/watch.json
lab_start

timeout -s INT 40 "$program" watch "$RELINK_LAB_PEER/random" --json --every 500ms \
  --read 00000002-7A3C-4D0B-9C41-52454C494E4B --notify 00000007-7A3C-4D0B-9C41-52454C494E4B > "$log" &
watch=$!

# Waits until the program has printed so many events of a kind.
printed() {
  local turn
  for turn in $(seq 300); do
    [ "$(grep -c "\"event\":\"$1\"" "$log")" -ge "$2" ] && return 0
    sleep 0.1
  done
  return 1
}

check "it becomes ready" printed ready 1
check "it reads" printed read 2
check "values come" printed value 5
equal "links lost" "$(ctl lose 08 | field lost)" 1
check "it sees that" printed disconnected 1
check "it is ready again" printed ready 2
reads=$(grep -c '"event":"read"' "$log")
check "it goes on reading" printed read $((reads + 2))
check "the values say that a link was lost" grep -q '"afterLoss":true' "$log"
kill -INT "$watch"
wait "$watch"
equal "its exit status" "$?" 0
check "it ends with its last event" grep -q '"event":"ended"' <(tail -n 1 "$log")
sed -n '1,6p;$p' "$log"
check "the radio ends" lab_stop
summary
