set -e
fio="$LOADER /bin/fio"
blkzone="$LOADER /bin/blkzone"
quiet="--thread --group_reporting --minimal"
gone() {
    for attempt in $(seq 100); do
        [ -e $1 ] || return 0
        usleep 100000
    done
    echo "$1 is still there"
    return 1
}

# A command in the background empties its files only when it begins. They are removed before, so that nobody takes what the
# last one wrote for its own.
echo "== refusals"
if f2fs ublk delete 77 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "no ublk device 77" /tmp/said
if f2fs ublk add --zoned 64M:3M 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "power of two" /tmp/said
if f2fs ublk add --zoned 8M:1M,conventional=8 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "all 8 zones are conventional" /tmp/said
echo "== refusals: ok"

echo "== unprivileged"
# user COMMAND...: as somebody who is not root. In /bin is the setpriv of busybox, which cannot do that.
user() {
    $LOADER /share/bin/setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
}
if user f2fs ublk add --memory 16M 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "udev rule" /tmp/said
# What udev does: the control is everybody's, the files of a device are its owner's.
chmod 666 /dev/ublk-control
given() {
    for attempt in $(seq 100); do
        [ -e $1 ] && break
        usleep 50000
    done
    chown 1000:1000 $1
}
given /dev/ublkc0 &
device=$(user f2fs ublk add --memory 16M --queues 2)
given $device
user f2fs ublk list --json | grep -q '"owner":1000'
user $fio --name=verify --filename=$device --rw=randwrite --bs=4k-64k --size=8m --direct=1 --ioengine=psync --verify=crc32c $quiet > /tmp/fio
# Beside root nobody else can open it, whatever the mode of its file.
chmod 666 $device
if $LOADER /share/bin/setpriv --reuid 1001 --regid 1001 --clear-groups dd if=$device of=/dev/null count=1 2> /tmp/said; then
    exit 1
fi
grep -q "not permitted" /tmp/said
dd if=$device of=/dev/null bs=4096 count=1 2> /dev/null
# A device of root is not the user's to see or to delete.
other=$(f2fs ublk add --memory 16M)
user f2fs ublk list --json | wc -l | grep -qx 1
if user f2fs ublk delete ${other#/dev/ublkb} 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "permission denied" /tmp/said
user f2fs ublk delete ${device#/dev/ublkb}
gone $device
# Without udev, the device stays behind, and root deletes it.
if user f2fs ublk add --memory 16M --number 5 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "root can delete ublk device 5" /tmp/said
f2fs ublk delete 5
gone /dev/ublkc5
f2fs ublk delete ${other#/dev/ublkb}
gone $other
if user f2fs ublk add --zoned 16M:1M 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "for root alone" /tmp/said
chmod 600 /dev/ublk-control
echo "== unprivileged: ok"

echo "== memory"
device=$(f2fs ublk add --memory 256M --queues 2 --depth 32)
test -b $device
f2fs ublk list
f2fs ublk list --json | grep -q '"state":"live"'
if f2fs ublk add --memory 1M --number 0 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "exists already" /tmp/said
$fio --name=verify --filename=$device --rw=randwrite --bs=4k-64k --size=16m --direct=1 --ioengine=psync --verify=crc32c --fsync=64 $quiet > /tmp/fio
blkdiscard $device
dd if=$device bs=1M count=16 2> /dev/null | tr -d '\0' | wc -c | grep -qx 0
f2fs ublk delete 0
gone $device
echo "== memory: ok"

echo "== file system"
truncate -s 128M /tmp/image
device=$(f2fs ublk add --file /tmp/image)
$LOADER /bin/mkfs.f2fs -q $device
mount -t f2fs $device /mnt
guest-agent make --scale small /mnt > /dev/null
guest-agent manifest /mnt > /tmp/there
if f2fs ublk delete ${device#/dev/ublkb} 2> /tmp/said; then exit 1; fi
grep -q "in use" /tmp/said
umount /mnt
f2fs ublk delete ${device#/dev/ublkb}
gone $device
f2fs check /tmp/image
f2fs manifest /tmp/image > /tmp/here
cmp /tmp/there /tmp/here
device=$(f2fs ublk add --file /tmp/image)
$LOADER /bin/mkfs.ext4 -q -F $device
mount -t ext4 $device /mnt
cp /bin/f2fs /mnt/copy
umount /mnt
mount -t ext4 $device /mnt
cmp /bin/f2fs /mnt/copy
umount /mnt
f2fs ublk delete ${device#/dev/ublkb}
gone $device
echo "== file system: ok"

echo "== zones"
device=$(f2fs ublk add --zoned 16M:1M,conventional=1,open=3)
guest-agent zones $device --blkzone "$blkzone" --blocks 4096 --zone-blocks 256 --capacity 256 --conventional 1 --max-open 3 --steps $STEPS --blkzone-every $EVERY --seed 2
$blkzone reset $device
$blkzone report $device | grep -c "1(em)" | grep -qx 15
f2fs ublk delete ${device#/dev/ublkb}
gone $device
mount -t configfs none /sys/kernel/config
at=/sys/kernel/config/nullb/zoned
mkdir $at
echo 16 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/zoned; echo 1 > $at/zone_size; echo 1 > $at/zone_nr_conv
echo 3 > $at/zone_max_open; echo 1 > $at/power
guest-agent zones /dev/zoned --blkzone "$blkzone" --blocks 4096 --zone-blocks 256 --capacity 256 --conventional 1 --max-open 3 --steps $STEPS --blkzone-every $EVERY --seed 2
echo "== zones: ok"

echo "== recovery"
device=$(f2fs ublk add --file /tmp/image --depth 16)
number=${device#/dev/ublkb}
server=$(f2fs ublk list --json | sed 's/.*"server":\([0-9]*\).*/\1/')
$fio --name=killed --filename=$device --rw=randwrite --bs=4k --size=100m --io_size=24m --direct=1 --ioengine=psync --rate_iops=1000 --verify=crc32c $quiet > /tmp/fio &
load=$!
sleep 1
kill -0 $load
kill -9 $server
sleep 1
f2fs ublk list
f2fs ublk list --json | grep -q '"state":"waiting"'
kill -0 $load
# Another file of the same size is none that the device was made of.
truncate -s $(stat -c %s /tmp/image) /tmp/other
if f2fs ublk recover $number --file /tmp/other 2> /tmp/said; then exit 1; fi
grep "was made of another file" /tmp/said
f2fs ublk list --json | grep -q '"state":"waiting"'
# A server that may not open enough files fails somewhere on its way, and leaves the device waiting.
recovered=
for files in $(seq 4 20); do
    if (ulimit -n $files; exec f2fs ublk recover $number --file /tmp/image) > /tmp/path 2> /tmp/said; then
        recovered=$files
        break
    fi
    f2fs ublk list --json | grep -q '"state":"waiting"'
done
echo "recovered with ${recovered:-more} files; before: $(tail -n 1 /tmp/said)"
[ -n "$recovered" ] || f2fs ublk recover $number --file /tmp/image
wait $load
f2fs ublk delete $number
gone $device
echo "== recovery: ok"

echo "== laboratory"
hundredths() {
    read up idle < /proc/uptime
    echo $((${up%.*} * 100 + 1${up#*.} - 100))
}
# Writes of one block take 4.6 ms on this card: 200 of them 0.93 s.
device=$(f2fs ublk add --memory 16M --slow card-a)
start=$(hundredths)
$fio --name=slow --filename=$device --rw=write --bs=4k --size=800k --direct=1 --ioengine=psync $quiet > /tmp/fio
took=$(($(hundredths) - start))
echo "slow: 200 writes in $took hundredths of a second"
[ $took -ge 92 ]
f2fs ublk delete ${device#/dev/ublkb}
gone $device
device=$(f2fs ublk add --memory 16M --faults write,after=10,error=28)
if $fio --name=full --filename=$device --rw=write --bs=4k --size=800k --direct=1 --ioengine=psync $quiet > /tmp/fio 2>&1; then exit 1; fi
grep -q "No space left" /tmp/fio
$fio --name=room --filename=$device --rw=write --bs=4k --size=800k --direct=1 --ioengine=psync $quiet > /tmp/fio 2>&1
f2fs ublk delete ${device#/dev/ublkb}
gone $device
truncate -s 128M /tmp/recorded
device=$(f2fs ublk add --file /tmp/recorded --record /tmp/log)
if f2fs ublk add --memory 1M --record /tmp/log 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "/tmp/log: " /tmp/said
$LOADER /bin/mkfs.f2fs -q $device
mount -t f2fs $device /mnt
guest-agent make --scale small /mnt > /dev/null
umount /mnt
f2fs ublk delete ${device#/dev/ublkb}
gone $device
guest-agent replay /tmp/log --blocks 32768 /tmp/replayed
cmp /tmp/recorded /tmp/replayed
rm /tmp/recorded /tmp/replayed /tmp/log
echo "== laboratory: ok"

echo "== stop"
rm -f /tmp/path /tmp/said
f2fs ublk add --memory 64M --foreground > /tmp/path 2> /tmp/said &
server=$!
for attempt in $(seq 100); do
    [ -s /tmp/path ] && break
    usleep 100000
done
device=$(cat /tmp/path)
$fio --name=busy --filename=$device --rw=randwrite --bs=4k --size=32m --time_based --runtime=60 --direct=1 --ioengine=psync $quiet > /tmp/fio 2>&1 &
load=$!
# A program that begins only after the device is gone would make a plain file in its place.
for attempt in $(seq 300); do
    [ $(awk '{print $5}' /sys/block/${device#/dev/}/stat) -gt 0 ] && break
    usleep 100000
done
kill -TERM $server
wait $server && exit 1
cat /tmp/said
grep -q "is deleted" /tmp/said
gone $device
wait $load || true
echo "== stop: ok"

echo "== speed"
at=/sys/kernel/config/nullb/memory
mkdir $at
echo 256 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/memory_backed; echo 1 > $at/power
rm -f /tmp/path /tmp/said
f2fs ublk add --memory 256M --queues 2 --depth 32 --foreground > /tmp/path 2> /tmp/said &
server=$!
for attempt in $(seq 100); do
    [ -s /tmp/path ] && break
    usleep 100000
done
for jobs in $JOBS; do
    for work in "randread 4k" "randwrite 4k" "write 256k" "read 256k"; do
        set -- $work
        for target in $(cat /tmp/path) /dev/memory; do
            $fio --name=speed --filename=$target --rw=$1 --bs=$2 --size=128m --time_based --runtime=$SECONDS_EACH --direct=1 --ioengine=io_uring --iodepth=32 --numjobs=$jobs $quiet > /tmp/fio
            # Fields of the terse form: IOPS of reads and of writes.
            echo "speed $jobs $1 $2 $target $(cut -d ';' -f 8,49 /tmp/fio)"
        done
    done
done
kill -TERM $server
wait $server && exit 1
cat /tmp/said
echo "== speed: ok"
