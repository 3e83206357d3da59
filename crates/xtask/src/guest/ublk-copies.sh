set -e
fio="$LOADER /bin/fio --thread --minimal --direct=1 --ioengine=io_uring --time_based --iodepth=32"
mount -t tracefs none /sys/kernel/tracing
calls=/sys/kernel/tracing/events/raw_syscalls/sys_enter
mkdir /tmp/images
mount -t tmpfs -o size=2g images /tmp/images
rmmod brd
insmod /modules/brd.ko rd_nr=8 rd_size=131072

# number: of the device that comes next.
next=0
disk=0
# file MEDIUM: a new file on it, or a new disk of memory.
file() {
    case $1 in
    tmpfs) file=/tmp/images/$next; truncate -s 128M $file ;;
    brd) file=/dev/ram$disk; disk=$((disk + 1)) ;;
    esac
}
# ours MEDIUM HOW: a device of this project; nothing if the kernel has it not.
ours() {
    file $1
    if f2fs-release ublk add --number $next --file $file --depth 128 --copy $2 > /dev/null 2> /tmp/said; then
        list="$list $1:$2=/dev/ublkb$next"
        next=$((next + 1))
    else
        grep "needs Linux" /tmp/said
    fi
}
# peer MEDIUM SIDE ARGUMENTS: a device of rublk.
peer() {
    file $1
    side=$1:$2
    shift 2
    $LOADER /bin/rublk add loop --number $next --queue 1 --depth 128 --foreground --file $file "$@" > /tmp/rublk.$next 2>&1 &
    for attempt in $(seq 200); do
        [ -b /dev/ublkb$next ] && break
        usleep 100000
    done
    [ -b /dev/ublkb$next ] || { cat /tmp/rublk.$next; exit 1; }
    list="$list $side=/dev/ublkb$next"
    next=$((next + 1))
}
list=
for medium in tmpfs brd; do
    for how in $WAYS; do
        ours $medium $how
    done
done
if [ $PEERS -gt 0 ]; then
    export HOME=/tmp
    peer brd rublk
    if [ $PEERS -gt 1 ] && f2fs-release ublk list --json | grep -q '"copy":"none"'; then
        peer brd rublk-z --zero-copy
    fi
fi
# measure DEVICE RW BS SECONDS: requests a second.
measure() {
    $fio --name=speed --filename=$1 --rw=$2 --bs=$3 --size=128m --runtime=$4 > /tmp/fio || { cat /tmp/fio; exit 1; }
    # Fields of the terse form: IOPS of reads and of writes.
    echo $(($(cut -d ';' -f 8 /tmp/fio) + $(cut -d ';' -f 49 /tmp/fio)))
}
# Reads find data everywhere.
for entry in $list; do
    dd if=/dev/zero of=${entry#*=} bs=1M count=128 oflag=direct 2> /dev/null
done
for size in $SIZES; do
    for work in randread randwrite; do
        for round in $(seq $ROUNDS); do
            for entry in $list; do
                echo "copy,$size,$work,$round,${entry%%=*},$(measure ${entry#*=} $work $size $SECONDS_EACH)"
            done
        done
    done
done

# System calls of the servers, counted by the kernel; begun once, and never ended.
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
    number=${device#/dev/ublkb}
    server=$(f2fs-release ublk list --json | grep "\"number\":$number," | sed 's/.*"server":\([0-9]*\).*/\1/')
    for work in randread randwrite; do
        count=$(counted $server)
        before=$(awk '{print $1 + $5}' /sys/block/ublkb$number/stat)
        measure $device $work 4k $SECONDS_EACH > /dev/null
        after=$(awk '{print $1 + $5}' /sys/block/ublkb$number/stat)
        echo "calls,${entry%%=*},$work,$(($(counted $server) - count)),$((after - before))"
    done
done
