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
# verify [SIZE [ARGUMENTS]]: data of several sizes at random places, read again and compared.
verify() {
    size=${1:-$SIZE}
    [ $# = 0 ] || shift
    $fio --name=verify --filename=$device --rw=randwrite --bs=4k-64k --size=$size --fsync=64 "$@" > /tmp/fio || { cat /tmp/fio; exit 1; }
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

echo "== without a copy"
mount -t configfs none /sys/kernel/config
# A disk on which blocks go bad, and whose memory must be aligned to 512 bytes. That of the users of ublk need not be.
bad=/sys/kernel/config/nullb/bad
mkdir $bad
echo 64 > $bad/size; echo 4096 > $bad/blocksize; echo 1 > $bad/memory_backed; echo 1 > $bad/power
# written [ARGUMENTS]: a megabyte of numbered blocks, or its check.
written() {
    $fio --name=written --filename=$device --rw=write --bs=64k --size=1m "$@" > /tmp/fio 2>&1
}
for how in none selective selective:64K; do
    truncate -s 64M /tmp/image
    if ! device=$(f2fs ublk add --file /tmp/image --copy $how --queues 2 --depth 32 2> /tmp/said); then
        grep -q "needs Linux 6.1[56]" /tmp/said
        echo "copies: $how is refused: $(cat /tmp/said)"
        continue
    fi
    f2fs ublk list --json | grep -q "\"copy\":\"${how%:*}\""
    verify
    # A bit that flips in the file, and a write that it does not have any more, are seen by whoever compares.
    written --do_verify=0
    printf x | dd of=/tmp/image bs=1 seek=300000 conv=notrunc 2> /dev/null
    if written --verify_only; then
        echo "$how: a flipped bit was not seen"
        exit 1
    fi
    grep -q -i "verify" /tmp/fio
    written --do_verify=0
    dd if=/tmp/image of=/tmp/old bs=4k skip=100 count=1 2> /dev/null
    written --do_verify=0 --verify_pattern=0x5a --verify=pattern
    dd if=/tmp/old of=/tmp/image bs=4k seek=100 conv=notrunc 2> /dev/null
    if written --verify_only --verify_pattern=0x5a --verify=pattern; then
        echo "$how: a lost write was not seen"
        exit 1
    fi
    grep -q -i "verify" /tmp/fio
    # What is behind the end of a file that became shorter is an error: pages that nothing was read to are no answer.
    truncate -s 32M /tmp/image
    for place in "4k 10240" "256k 160"; do
        set -- $place
        if dd if=$device of=/dev/null bs=$1 skip=$2 count=1 iflag=direct 2> /tmp/said; then
            echo "$how: what is behind the file's end was read"
            exit 1
        fi
        grep -q "Input/output error" /tmp/said
    done
    gone
    # Bad blocks are errors of the requests that touch them, and of no others; when they are good again, all is well.
    device=$(f2fs ublk add --file /dev/bad --copy $how)
    verify
    echo "+2048-2055" > $bad/badblocks
    for size in 4k 64k 512k; do
        if dd if=$device of=/dev/null bs=$size iflag=direct 2> /tmp/said; then
            echo "$how: bad blocks were read"
            exit 1
        fi
        grep -q "Input/output error" /tmp/said
        if dd if=/dev/zero of=$device bs=$size oflag=direct 2> /tmp/said; then
            echo "$how: bad blocks were written"
            exit 1
        fi
        grep -q "Input/output error" /tmp/said
        dd if=$device of=/dev/null bs=4k count=256 iflag=direct 2> /dev/null
        dd if=$device of=/dev/null bs=4k skip=257 count=512 iflag=direct 2> /dev/null
    done
    echo "-2048-2055" > $bad/badblocks
    verify
    verify $SIZE --iomem_align=4
    gone
    truncate -s 8M /tmp/suite
    device=$(f2fs ublk add --file /tmp/suite --copy $how --queues 2)
    suite "without a copy ($how)"
    rm /tmp/image /tmp/suite
    echo "copies: $how"
done
# What is no file has no data that could be moved so.
if f2fs ublk add --memory 16M --copy none 2> /tmp/said; then exit 1; fi
grep -q "a device that is a file" /tmp/said
echo "== without a copy: ok"

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
