# Each HCI reason, with the privileges and sources that there may be: the session says the finest reason that they tell.
# Seconds: 900
. "$(dirname "$0")/common.sh"
lab_start
chmod 666 "$RELINK_LAB_CONTROL"

echo "--- root"
judge 200 reasons
judge 200 reasons --without-controller

echo "--- a user with CAP_NET_ADMIN"
judge_as "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+net_admin --ambient-caps=+net_admin --bounding-set=-all,+net_admin" \
  200 reasons
judge_as "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all,+net_admin --ambient-caps=+net_admin --bounding-set=-all,+net_admin" \
  200 reasons --without-controller

echo "--- a user without capabilities"
judge_as "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all" 200 reasons
judge_as "setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all --bounding-set=-all" \
  200 reasons --without-controller

check "the radio ends" lab_stop
summary
