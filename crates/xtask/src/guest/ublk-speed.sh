set -e
fio="$LOADER /bin/fio --thread --group_reporting --minimal --direct=1 --ioengine=io_uring --time_based"
mount -t configfs none /sys/kernel/config
mount -t tracefs none /sys/kernel/tracing
calls=/sys/kernel/tracing/events/raw_syscalls/sys_enter

# number: of the device that comes next.
next=0
# ours SIDE ARGUMENTS: a device of this project.
ours() {
    side=$1
    shift
    f2fs-release ublk add --number $next --queues $QUEUES --depth 128 "$@" > /dev/null
    list="$list $side=/dev/ublkb$next"
    next=$((next + 1))
}
# peer SIDE TARGET ARGUMENTS: a device of rublk.
peer() {
    side=$1 target=$2
    shift 2
    $LOADER /bin/rublk add $target --number $next --queue $QUEUES --depth 128 --foreground "$@" > /tmp/rublk.$next 2>&1 &
    for attempt in $(seq 200); do
        [ -b /dev/ublkb$next ] && break
        usleep 100000
    done
    [ -b /dev/ublkb$next ] || { cat /tmp/rublk.$next; exit 1; }
    list="$list $side=/dev/ublkb$next"
    next=$((next + 1))
}
# null SIDE ARGUMENTS: a device of null_blk, in memory.
null() {
    side=$1
    at=/sys/kernel/config/nullb/$side
    mkdir $at
    echo 256 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/memory_backed; echo $QUEUES > $at/submit_queues
    if [ -n "${2:-}" ]; then
        echo 1 > $at/zoned; echo 16 > $at/zone_size; echo 0 > $at/zone_nr_conv
    fi
    echo 1 > $at/power
    list="$list $side=/dev/$side"
}
list=
truncate -s 256M /tmp/ours /tmp/peers
ours null --null 256M
ours memory --memory 256M
ours file --file /tmp/ours
ours zones --zoned 256M:16M
if [ $PEER = 1 ]; then
    export HOME=/tmp
    peer rublk-null null
    peer rublk-loop loop --file /tmp/peers
    peer rublk-zoned zoned --size 256MiB --zone-size 16MiB --pre-alloc-size 16MiB --conv-zones 0
fi
null null_blk
null null_blk-zoned zoned
rmmod brd
insmod /modules/brd.ko rd_nr=1 rd_size=262144
list="$list brd=/dev/ram0"

# measure SIDE DEVICE JOBS RW BS SECONDS: requests a second.
measure() {
    zones=
    case $1 in *zone*) zones="--zonemode=zbd" ;; esac
    rw=$4
    # fio's jobs now and then write to a zone of null_blk off its pointer: then once more.
    attempt=1
    until $fio --name=speed --filename=$2 --rw=$rw --bs=$5 --size=192m --runtime=$6 --iodepth=32 --numjobs=$3 $zones > /tmp/fio; do
        [ $attempt -lt 3 ] || { cat /tmp/fio; exit 1; }
        attempt=$((attempt + 1))
    done
    # Fields of the terse form: IOPS of reads and of writes.
    echo $(($(cut -d ';' -f 8 /tmp/fio) + $(cut -d ';' -f 49 /tmp/fio)))
}
# Reads find data everywhere.
for entry in $list; do
    device=${entry#*=}
    dd if=/dev/zero of=$device bs=1M count=256 oflag=direct 2> /dev/null
done
for jobs in $JOBS; do
    for work in "randread 4k" "read 256k" "randwrite 4k" "write 256k"; do
        set -- $work
        for round in $(seq $ROUNDS); do
            for entry in $list; do
                echo "speed,$jobs,$1,$2,$round,${entry%%=*},$(measure ${entry%%=*} ${entry#*=} $jobs $1 $2 $SECONDS_EACH)"
            done
        done
    done
done

# System calls of the servers, counted by the kernel, at depth 32 with one job. The counting is begun once, and never ended:
# the kernel changes its own code for that, which an emulated machine does not always survive.
sleep 1
echo 'hist:keys=common_pid' > $calls/trigger
# counted SERVER: of all its threads.
counted() {
    sum=0
    for task in /proc/$1/task/*; do
        hits=$(grep "common_pid: *${task##*/} " $calls/hist | sed 's/.*hitcount: *\([0-9]*\).*/\1/')
        sum=$((sum + ${hits:-0}))
    done
    echo $sum
}
for entry in $list; do
    device=${entry#*=}
    case $device in /dev/ublkb*) ;; *) continue ;; esac
    number=${device#/dev/ublkb}
    server=$(f2fs-release ublk list --json | grep "\"number\":$number," | sed 's/.*"server":\([0-9]*\).*/\1/')
    for work in "randread 4k" "randwrite 4k"; do
        set -- $work
        count=$(counted $server)
        before=$(awk '{print $1 + $5}' /sys/block/ublkb$number/stat)
        measure ${entry%%=*} $device 1 $1 $2 $SECONDS_EACH > /dev/null
        after=$(awk '{print $1 + $5}' /sys/block/ublkb$number/stat)
        echo "calls,${entry%%=*},$1,$(($(counted $server) - count)),$((after - before))"
    done
done
