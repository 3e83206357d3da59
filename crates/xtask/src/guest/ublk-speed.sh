fio="$LOADER /bin/fio --thread --group_reporting --minimal --direct=1 --ioengine=io_uring --time_based"
mount -t configfs none /sys/kernel/config

# ours SIDE ARGUMENTS: a device of this project.
ours() {
    side=$1
    shift
    f2fs-release ublk add --number $next --queues $QUEUES --depth 128 "$@" > /dev/null
    came $side
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
    operations
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

# At depth 32 with one job.
count_calls
for entry in $list; do
    case ${entry#*=} in /dev/ublkb*) ;; *) continue ;; esac
    for work in randread randwrite; do
        calls_of ${entry%%=*} ${entry#*=} $work measure ${entry%%=*} ${entry#*=} 1 $work 4k $SECONDS_EACH
    done
done
