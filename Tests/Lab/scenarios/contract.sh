# The contract suites of RelinkTesting hold over a link of the kernel, with a peripheral that nobody here wrote.
# Seconds: 600
. "$(dirname "$0")/common.sh"
lab_start
export RELINK_LAB_ADAPTER="$lab_python $lab_here/adapter.py"
judge 500 contract
check "the radio ends" lab_stop
summary
