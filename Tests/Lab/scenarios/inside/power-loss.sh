# One life of the machine in the scenario power-loss; with `last`, the one that is not cut short.
. "$(dirname "$0")/../common.sh"
mkdir -p /disk
mount -t ext4 /dev/vda /disk
lab_start
check "the peripheral remembers" ctl remember "$RELINK_LAB_OUT/applied"
judge 500 journal /disk "$RELINK_LAB_OUT/ledger" "$@"
check "the audit log holds" "$(dirname "$RELINK_LAB_BINARY")/relink" audit verify /disk/audit.jsonl
umount /disk
summary
