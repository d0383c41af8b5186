# The machine itself is sound: the L2CAP tests of BlueZ for LE pass in it, with BlueZ's own emulated controller.
# Seconds: 170
. "$(dirname "$0")/common.sh"
log=$RELINK_LAB_OUT/l2cap-tester.log
timeout 150 l2cap-tester -q -p 'L2CAP LE' > "$log" 2>&1
sed 's/\x1b\[[0-9;]*m//g' "$log" | sed -n '/^Test Summary/,$p'
check "l2cap-tester ran" grep -q 'Passed: [1-9]' <(sed 's/\x1b\[[0-9;]*m//g' "$log")
check "and nothing failed" grep -q 'Failed: 0' <(sed 's/\x1b\[[0-9;]*m//g' "$log")
summary
