# NVMe namespaces by their own commands: the promises of every device, the commands that arrive, a volume, who is kept out, and refusals.
set -e
trap 'dmesg | tail -30 >&2' EXIT

# generic SERIAL: the character device of a namespace.
generic() {
    disk=$(device $1)
    test -c /dev/ng${disk#/dev/nvme}
    echo /dev/ng${disk#/dev/nvme}
}

# promises POLLING DEVICE FILTER...: the tests of f2fs-uring on it.
promises() {
    polling=$1 path=$2
    shift 2
    F2FS_TEST_DEVICE=$path F2FS_TEST_POLLING=$polling /bin/promises --ignored --test-threads 1 "$@" > /tmp/promises 2>&1 || {
        cat /tmp/promises
        exit 1
    }
    echo "promises '$polling' on $path: $(grep 'test result' /tmp/promises)"
}
for name in small large; do
    promises "" $(generic $name) named::
done
promises io $(generic small) named::a_queue named::buffers named::durable
promises sq $(generic small) named::a_queue named::buffers named::durable
promises io $(device small) named::a_queue named::buffers named::durable
promises "io sq" $(device large) named::a_queue named::buffers named::durable
echo "== promises: ok"

mount -t tracefs none /sys/kernel/tracing
tracing=/sys/kernel/tracing
for name in small large; do
    path=$(generic $name)
    echo > $tracing/trace
    echo 1 > $tracing/events/nvme/nvme_setup_cmd/enable
    guest-agent commands $path
    echo 0 > $tracing/events/nvme/nvme_setup_cmd/enable
    # arrived PATTERN COUNT: so many commands of this kind arrived.
    arrived() {
        if [ $(grep -c "$1" $tracing/trace) != $2 ]; then
            echo "$path: $1: not $2"
            cat $tracing/trace
            exit 1
        fi
    }
    arrived "nvme_cmd_flush" 1
    arrived "nvme_cmd_write slba.*ctrl=0x4000" 2
    arrived "nvme_cmd_write slba.*ctrl=0x0," 2
    arrived "nvme_cmd_dsm" 1
    arrived "nvme_cmd_write_zeroes" 1
done
echo "== commands: ok"

disk=$(device volume) path=$(generic volume)
f2fs format $path
guest-agent make --scale $SCALE --require-io-uring --image $path
f2fs check $path
f2fs manifest $path > /share/made
mount -t f2fs $disk /mnt
guest-agent manifest --defer /share/mounted.large /mnt > /share/mounted
# refused WORDS...: who is in the way is said.
refused() {
    if "$@" 2> /tmp/said; then
        echo "not refused: $*"
        exit 1
    fi
    cat /tmp/said
    grep -q -i -e "in use by" -e busy /tmp/said
}
refused f2fs mkdir $path /refused
umount /mnt
guest-agent endure $path --synced /tmp/synced &
agent=$!
while [ ! -e /tmp/synced ] || [ "$(wc -l < /tmp/synced)" -lt 20 ]; do
    kill -0 $agent
    usleep 20000
done
refused f2fs mkdir $path /refused
refused f2fs mkdir $disk /refused
refused mount -t f2fs $disk /mnt
kill -9 $agent
wait $agent || true
guest-agent endured $path --synced /tmp/synced --least 20
f2fs check $disk
f2fs manifest $path > /share/endured.made
mount -t f2fs -o ro $disk /mnt
guest-agent manifest --defer /share/endured.large /mnt > /share/endured
umount /mnt
# Here, where the device has the sectors that the superblock names: of a file fsck.f2fs would change them.
yes n | $LOADER /bin/fsck.f2fs --dry-run $disk > /tmp/fsck 2>&1 || { cat /tmp/fsck; exit 1; }
if grep -q -e '\[Fail\]' -e '\[ASSERT\]' /tmp/fsck; then
    cat /tmp/fsck
    exit 1
fi
echo "== volume: ok"

guest-agent commands $(generic bad) --refused 10240
for path in /dev/nvme0 /dev/null; do
    if f2fs ls $path 2> /tmp/said; then exit 1; fi
    cat /tmp/said
done
echo "== refusals: ok"
trap - EXIT
