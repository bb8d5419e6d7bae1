#!/bin/sh
# Stands where mtr expects mariadb-test, and keeps what a test really printed, whether it passed or not.
#
# For a test (mtr gives it --tail-lines) the comparison with its .result file is replaced by recording into a folder of
# its own: under another default engine most .result files would be wrong, and what counts here is that InnoDB and QUARRY
# print the same. Such a test fails only where it stops: at an unexpected error, a crash, a timeout.
# Everything else (mtr's own checks, a test that runs mariadb-test itself) passes through untouched.
#
#   QUARRY_MTR_CLIENT   the real mariadb-test
#   QUARRY_MTR_OUTPUT   folder in which each test gets one, NAME[,COMBINATION...]: output, message, exit (mtr gives the
#                       last two as well, but not to somebody who interrupts it)
if [ -n "$QUARRY_MTR_INSIDE" ]; then exec "$QUARRY_MTR_CLIENT" "$@"; fi
is_test=
for argument; do
  case $argument in --tail-lines=*) is_test=1 ;; esac
done
[ -n "$is_test" ] || exec "$QUARRY_MTR_CLIENT" "$@"

count=$#
for argument; do
  case $argument in
    --result-file=*) ;;
    --test-file=*) test=${argument##*/}; set -- "$@" "$argument" ;;
    --logdir=*) logs=${argument#*=}; set -- "$@" "$argument" ;;
    *) set -- "$@" "$argument" ;;
  esac
done
shift "$count"
test=${test%.test}
folder=$QUARRY_MTR_OUTPUT/$MTR_TEST_NAME${MTR_COMBINATIONS:+,$MTR_COMBINATIONS}
rm -rf "$folder"
mkdir -p "$folder" || exit 1
export QUARRY_MTR_INSIDE=1
"$QUARRY_MTR_CLIENT" "$@" --record --result-file="$folder/$test.result" 2>"$folder/message"
code=$?
cat "$folder/message" >&2
# A test that stopped has recorded nothing: its log is what it printed until then.
if [ -f "$folder/$test.result" ]; then mv "$folder/$test.result" "$folder/output"
elif [ -f "$logs/$test.log" ]; then cp "$logs/$test.log" "$folder/output"; fi
echo "$code" >"$folder/exit"
exit "$code"
