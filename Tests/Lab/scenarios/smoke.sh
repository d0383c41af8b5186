# The lab itself: the radio answers, the kernel's socket loses its link in eight ways and comes back each time.
# Seconds: 170
. "$(dirname "$0")/common.sh"
lab_start

equal "the peripheral waits" "$(ctl links | field links)" 0
check "an unknown command is refused" grep -q '"ok": false' <(ctl nonsense)

baseline=$RELINK_LAB_OUT/baseline.json
check "the bare socket comes back after 8 losses" "$RELINK_LAB/baseline" 8 > "$baseline"
cat "$baseline"

stats=$(ctl stats)
equal "links" "$(field links <<< "$stats")" 9
equal "reads answered" "$(field counter reads <<< "$stats")" 9
equal "answers without a link" "$(field late <<< "$stats")" 0
# The last link, left behind by the program's end, may have ended by now: 13.
losses=$(field gone <<< "$stats" | tr -d '"{} ')
equal "losses by reason" "${losses%,13:1}" "08:1,16:2,22:1,3d:1,3e:1,05:1,06:1"
check "it ends" lab_stop
summary
