# Shared by the scripts beside it: `. .ci/common.sh` at the top of the package.

logs=.build/ci
mkdir -p "$logs"

# The strict build has a folder of its own, so that it and a plain `swift build` do not undo each other.
strict=(--scratch-path "$logs/debug" -Xswiftc -warnings-as-errors -Xcc -Werror)

# A crash shows where, not every register.
export SWIFT_BACKTRACE=enable=yes,interactive=no,color=no,threads=crashed,registers=none,images=none

# quietly LOG COMMAND... : what the command says goes to $logs/LOG.log; the part that matters is shown when it fails.
quietly() {
  local log=$logs/$1.log
  shift
  "$@" >"$log" 2>&1 && return
  local status=$?
  grep -v -E '^\[[0-9]+/[0-9]+\]' "$log" | tail -n 60
  echo "   exit status $status; all of it: $log"
  return "$status"
}

# tests NAME LIMIT ARGUMENT... : `swift test`, shown without what passed; leaves its counts in $logs/NAME.count as
# "passed failed skipped". A run that ends without having counted is a failure; so is a misused continuation.
tests() {
  local name=$1 limit=$2 status=0 passed failed skipped
  shift 2
  rm -f "$logs/$name.xml"
  # By lines, so that the log of a run that hangs says where.
  timeout --signal=INT --kill-after=10 "$limit" stdbuf -oL swift test --disable-xctest "$@" --xunit-output "$logs/$name.xml" </dev/null 2>&1 |
    tee "$logs/$name.log" |
    awk '/^✔ Test run with/ { print } /^(◇|✔|➜ |\[|Building for|Build complete)/ { next } { print }' || status=${PIPESTATUS[0]}
  read -r passed failed skipped <<<"$(.ci/tally "$logs/$name.xml")"
  [ "$status" != 0 ] || [ -e "$logs/$name.xml" ] || status=1
  if [ "$status" != 0 ]; then
    [ "$failed" -gt 0 ] || failed=1
    echo "   exit status $status$([ "$status" != 124 ] || echo ": not ended after $limit s")"
    unfinished "$logs/$name.log" | head -n 10
  fi
  if grep -q -E 'CONTINUATION MISUSE|WARNING: ThreadSanitizer' "$logs/$name.log"; then
    failed=$((failed + 1))
    echo "   a misused continuation or a data race; all of it: $logs/$name.log"
  fi
  echo "$passed $failed $skipped" >"$logs/$name.count"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# unfinished LOG : the tests that had begun and not ended when the run did.
unfinished() {
  sed -n -E 's/^◇ Test (.*) started\.$/+\1/p; s/^[✔✘] Test (.*) (passed|failed) after .*$/-\1/p' "$1" |
    awk '{ name = substr($0, 2); sub(/ with [0-9]+ test cases?$/, "", name); open[name] += /^[+]/ ? 1 : -1 }
         END { for (name in open) if (open[name] > 0 && name !~ /^case |^run$/) print "   not ended: " name }'
}

# closing PASSED FAILED SKIPPED : the last line of a run.
closing() {
  if [ "$3" -gt 0 ]; then
    echo "$1 passed, $2 failed, $3 skipped"
  else
    echo "$1 passed, $2 failed"
  fi
}
