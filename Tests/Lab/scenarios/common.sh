# Sourced by every scenario, inside the machine: a radio that is up, checks that count, a summary.
#
#   lab_start              start radio and adapter; the peripheral advertises when this returns
#   lab_stop               end them
#   ctl WORD…              one command to the radio, its JSON reply on standard output
#   field NAME… < JSON     one value of a reply: field lock duplicates
#   check WHAT COMMAND…    counts a pass if COMMAND succeeds, a failure otherwise
#   equal WHAT IS WANTED   counts a pass if both are the same
#   judge SECONDS WORD…    run relink-lab, which prints `ok …` and `FAILED …` lines of its own, and count them
#   judge_as COMMAND SECONDS WORD…   the same below a command that changes who runs it, in words: "setpriv --reuid 65534"
#   summary                print "N passed, M failed" and exit accordingly
# After lab_start, RELINK_LAB_CONTROL is the control socket and RELINK_LAB_PEER the peripheral's address (random).

lab_here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lab_python=$RELINK_LAB/venv/bin/python
lab_passed=0
lab_failed=0
export RELINK_LAB_CONTROL=/run/relink-lab.control RELINK_LAB_PEER=F0:F0:F0:F0:F0:02

lab_start() {
  rm -f "$RELINK_LAB_CONTROL"
  # Before the others: the kernel gives a controller 2 s to answer a command.
  nice -n -10 "$lab_python" "$lab_here/radio.py" "$RELINK_LAB_CONTROL" > "$RELINK_LAB_OUT/radio.log" 2>&1 &
  lab_radio=$!
  local turn
  for turn in $(seq 600); do
    [ -S "$RELINK_LAB_CONTROL" ] && break
    kill -0 "$lab_radio" 2> /dev/null || break
    sleep 0.1
  done
  if ! [ -S "$RELINK_LAB_CONTROL" ] || ! "$lab_python" "$lab_here/adapter.py" setup; then
    echo "the radio did not start:"
    cat "$RELINK_LAB_OUT/radio.log"
    exit 1
  fi
}

lab_stop() {
  ctl quit > /dev/null || kill "$lab_radio"
  wait "$lab_radio"
}

ctl() {
  "$lab_python" "$lab_here/ctl.py" "$@"
}

field() {
  "$lab_python" -c '
import json, sys
value = json.load(sys.stdin)
for name in sys.argv[1:]:
    value = value[int(name)] if isinstance(value, list) else value[name]
print(value if isinstance(value, str) else json.dumps(value))' "$@"
}

check() {
  local what=$1
  shift
  if "$@"; then
    lab_passed=$((lab_passed + 1))
    echo "ok      $what"
  else
    lab_failed=$((lab_failed + 1))
    echo "FAILED  $what"
  fi
}

equal() {
  check "$1: $2" test "$2" = "$3"
}

judge() {
  judge_as '' "$@"
}

judge_as() {
  local line status=1 who=$1 seconds=$2
  shift 2
  while IFS= read -r line; do
    case $line in
      'ok '*) lab_passed=$((lab_passed + 1)) ;;
      'FAILED '*) lab_failed=$((lab_failed + 1)) ;;
      'exit status '*)
        status=${line#exit status }
        continue
        ;;
    esac
    echo "$line"
  done < <(timeout "$seconds" $who "$RELINK_LAB_BINARY" "$@" 2>&1; echo "exit status $?")
  # A crash, or a hang that was ended, prints no line of its own.
  check "relink-lab $* came to its end" test "$status" -le 1
}

summary() {
  echo "$lab_passed passed, $lab_failed failed"
  if [ "$lab_failed" != 0 ]; then
    echo "--- the radio's log"
    [ ! -f "$RELINK_LAB_OUT/radio.log" ] || tail -n 40 "$RELINK_LAB_OUT/radio.log"
    exit 1
  fi
  exit 0
}
