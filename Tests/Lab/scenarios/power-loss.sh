# The machine is ended in the middle of durable writes, as a loss of power would, and started again on the same disk: its
# journal goes on, nothing is done twice and everything is accounted for.
# Runs outside the machine, which it starts several times.
# Seconds: 3600
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
losses=${1:-4}
kept=${RELINK_LAB_OUT:-}
out=${kept:-$(mktemp -d /var/tmp/relink-lab-out.XXXXXX)}
export RELINK_LAB_OUT=$out RELINK_LAB_DISK=$out/disk
mkdir -p "$out"
rm -f "$out"/{ledger,applied}
truncate -s 128M "$RELINK_LAB_DISK"
mkfs.ext4 -q -F "$RELINK_LAB_DISK"

passed=0 failed=0
verdict() {
  if [ "$1" = 0 ]; then
    passed=$((passed + 1))
    echo "ok      $2"
  else
    failed=$((failed + 1))
    echo "FAILED  $2"
  fi
}

lines() {
  if [ -f "$out/$1" ]; then wc -l < "$out/$1"; else echo 0; fi
}

# lost NUMBER : one life of the machine, ended when the session has got somewhere.
lost() {
  local machine turn before wanted word
  before=$(lines ledger)
  wanted=$((before + 10 + RANDOM % 60))
  rm -f "$out/pid"
  "$here/../lab" run "$here/inside/power-loss.sh" 600 > "$out/machine-$1.log" 2>&1 &
  machine=$!
  for turn in $(seq 5700); do
    [ "$(lines ledger)" -lt "$wanted" ] || break
    kill -0 "$machine" 2> /dev/null || break
    sleep 0.1
  done
  sleep "0.$((RANDOM % 10))"
  kill -9 "$(cat "$out/pid")" || true
  wait "$machine" || true
  turn=$(lines ledger)
  word=0
  [ "$turn" -ge "$wanted" ] || word=1
  verdict "$word" "life $1: the power was cut after $((turn - before)) lines of the ledger, $(lines applied) writes applied so far"
}

for number in $(seq "$losses"); do
  lost "$number"
done
status=0
"$here/../lab" run "$here/inside/power-loss.sh" 600 last > "$out/machine-last.log" 2>&1 || status=$?
grep -E '^(ok|FAILED|   )' "$out/machine-last.log" || true
read -r inside wrong <<< "$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed.*$/\1 \2/p' "$out/machine-last.log" | tail -n 1)"
passed=$((passed + ${inside:-0})) failed=$((failed + ${wrong:-1}))
if [ "$failed" = 0 ] && [ "$status" = 0 ]; then
  [ -n "$kept" ] || rm -rf "$out"
else
  tail -n 20 "$out/machine-last.log"
  echo "lab: the files of the run are in $out" >&2
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ] && [ "$status" = 0 ]
