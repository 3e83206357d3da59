set -e
fio="$LOADER /bin/fio --thread --minimal --direct=1 --ioengine=psync --verify=crc32c"
zonefio="$fio --name=zones --zonemode=zbd --rw=write"
# gone: deletes $device.
gone() {
    f2fs ublk delete ${device#/dev/ublkb}
    for attempt in $(seq 100); do
        [ -e $device ] || return 0
        usleep 100000
    done
    echo "$device is still there"
    return 1
}
# verify [SIZE]: data of several sizes at random places, read again and compared.
verify() {
    $fio --name=verify --filename=$device --rw=randwrite --bs=4k-64k --size=${1:-$SIZE} --fsync=64 > /tmp/fio || { cat /tmp/fio; exit 1; }
}
# suite KIND: the test suite of devices, on a device of 8 MiB.
suite() {
    F2FS_TEST_DEVICE=$device promises --ignored named:: --test-threads 1 > /tmp/said 2>&1 || { cat /tmp/said; exit 1; }
    echo "promises $1: $(grep -c ' \.\.\. ok$' /tmp/said) tests"
    gone
}

echo "== memory"
device=$(f2fs ublk add --memory 64M --queues 2 --depth 32)
verify
gone
device=$(f2fs ublk add --memory 8M)
suite memory
echo "== memory: ok"

echo "== file"
mkdir /tmp/images
mount -t tmpfs images /tmp/images
truncate -s 64M /tmp/images/image
device=$(cd /tmp/images && f2fs ublk add --file image)
server=$(f2fs ublk list | sed 's/.*process \([0-9]*\).*/\1/')
[ "$(readlink /proc/$server/cwd)" = / ]
verify
gone
umount /tmp/images
truncate -s 64M /tmp/image
device=$(f2fs ublk add --file /tmp/image)
verify
gone
rm /tmp/image
truncate -s 8M /tmp/image
device=$(f2fs ublk add --file /tmp/image --queues 2)
suite file
echo "== file: ok"

echo "== zones"
device=$(f2fs ublk add --zoned 64M:4M:3M,open=4,active=6)
$zonefio --filename=$device --bs=64k --size=24m --max_open_zones=4 > /tmp/fio || { cat /tmp/fio; exit 1; }
# Zones that are full are emptied first.
$zonefio --filename=$device --bsrange=4k-64k --size=8m --max_open_zones=2 > /tmp/fio || { cat /tmp/fio; exit 1; }
gone
echo "== zones: ok"

echo "== conventional zones"
device=$(f2fs ublk add --zoned 64M:4M,conventional=4)
$fio --name=verify --filename=$device --rw=randwrite --bs=4k-64k --size=16m --zonemode=zbd > /tmp/fio || { cat /tmp/fio; exit 1; }
$zonefio --filename=$device --bs=64k --offset=16m --size=16m > /tmp/fio || { cat /tmp/fio; exit 1; }
gone
echo "== conventional zones: ok"

echo "== user copy"
device=$(f2fs ublk add --memory 64M --user-copy)
verify
gone
device=$(f2fs ublk add --memory 8M --user-copy --queues 2)
suite user-copy
echo "== user copy: ok"

echo "== slow"
device=$(f2fs ublk add --memory 16M --slow nvme,reads=nvme,flush=1)
verify 2m
gone
device=$(f2fs ublk add --memory 8M --slow nvme)
suite slow
echo "== slow: ok"

echo "== faults"
# A write that fails is seen, and what is written afterwards is there.
device=$(f2fs ublk add --memory 64M --faults write,after=10,error=5)
if $fio --name=failed --filename=$device --rw=write --bs=4k --size=800k > /tmp/fio 2>&1; then exit 1; fi
grep -q "Input/output error" /tmp/fio
verify
gone
# A bit that is flipped, and a write that is lost, are seen by whoever compares.
for fault in read,after=100,flipped=12345 write,after=100,lost; do
    device=$(f2fs ublk add --memory 64M --faults $fault)
    if $fio --name=wrong --filename=$device --rw=write --bs=4k --size=1m > /tmp/fio 2>&1; then
        echo "$fault was not seen"
        exit 1
    fi
    grep -q -i "verify" /tmp/fio
    gone
done
device=$(f2fs ublk add --memory 8M --faults write,after=1000000,error=5)
suite faults
echo "== faults: ok"

echo "== recorded"
truncate -s 64M /tmp/recorded
device=$(f2fs ublk add --file /tmp/recorded --record /tmp/log)
verify
gone
guest-agent replay /tmp/log --blocks 16384 /tmp/replayed
cmp /tmp/recorded /tmp/replayed
rm /tmp/recorded /tmp/replayed /tmp/log
device=$(f2fs ublk add --memory 8M --record /tmp/log)
suite recorded
echo "== recorded: ok"
