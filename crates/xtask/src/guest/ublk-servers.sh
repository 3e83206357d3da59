# What the scripts have in common that compare servers of block devices. The one that goes on behind this sets `fio`.
set -e
mount -t tracefs none /sys/kernel/tracing
calls=/sys/kernel/tracing/events/raw_syscalls/sys_enter
# The devices, as SIDE=PATH.
list=
# The number of the one that comes next.
next=0

# came SIDE: the device with the next number is there.
came() {
    list="$list $1=/dev/ublkb$next"
    next=$((next + 1))
}
# peer SIDE TARGET ARGUMENTS: a device of rublk with so many QUEUES.
peer() {
    side=$1 target=$2
    shift 2
    $LOADER /bin/rublk add $target --number $next --queue $QUEUES --depth 128 --foreground "$@" > /tmp/rublk.$next 2>&1 &
    for attempt in $(seq 200); do
        [ -b /dev/ublkb$next ] && break
        usleep 100000
    done
    [ -b /dev/ublkb$next ] || { cat /tmp/rublk.$next; exit 1; }
    came $side
}
# operations: of reads and of writes a second, fields of fio's terse form.
operations() {
    echo $(($(cut -d ';' -f 8 /tmp/fio) + $(cut -d ';' -f 49 /tmp/fio)))
}
# count_calls: system calls of all servers are counted by the kernel from here on. It is begun once, and never ended: the
# kernel changes its own code for that, which an emulated machine does not always survive.
count_calls() {
    sleep 1
    echo 'hist:keys=common_pid' > $calls/trigger
}
# counted SERVER: the calls of all its threads.
counted() {
    sum=0
    for task in /proc/$1/task/*; do
        hits=$(grep "common_pid: *${task##*/} " $calls/hist | sed 's/.*hitcount: *\([0-9]*\).*/\1/')
        sum=$((sum + ${hits:-0}))
    done
    echo $sum
}
# calls_of SIDE DEVICE WORK COMMAND: prints the calls of its server, and its requests, while a command works on it.
calls_of() {
    served=$1 number=${2#/dev/ublkb} what=$3
    shift 3
    server=$(f2fs-release ublk list --json | grep "\"number\":$number," | sed 's/.*"server":\([0-9]*\).*/\1/')
    count=$(counted $server)
    before=$(awk '{print $1 + $5}' /sys/block/ublkb$number/stat)
    "$@" > /dev/null
    after=$(awk '{print $1 + $5}' /sys/block/ublkb$number/stat)
    echo "calls,$served,$what,$(($(counted $server) - count)),$((after - before))"
}
