fio="$LOADER /bin/fio --thread --minimal --direct=1 --ioengine=io_uring --time_based --iodepth=32"
QUEUES=1
mkdir /tmp/images
mount -t tmpfs -o size=2g images /tmp/images
rmmod brd
insmod /modules/brd.ko rd_nr=8 rd_size=131072

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
        came $1:$2
    else
        grep "needs Linux" /tmp/said
    fi
}
# peer_on MEDIUM SIDE ARGUMENTS: a device of rublk.
peer_on() {
    file $1
    side=$1:$2
    shift 2
    peer $side loop --file $file "$@"
}
for medium in tmpfs brd; do
    for how in $WAYS; do
        ours $medium $how
    done
done
if [ $PEERS -gt 0 ]; then
    export HOME=/tmp
    peer_on brd rublk
    if [ $PEERS -gt 1 ] && f2fs-release ublk list --json | grep -q '"copy":"none"'; then
        peer_on brd rublk-z --zero-copy
    fi
fi
# measure DEVICE RW BS SECONDS: requests a second.
measure() {
    $fio --name=speed --filename=$1 --rw=$2 --bs=$3 --size=128m --runtime=$4 > /tmp/fio || { cat /tmp/fio; exit 1; }
    operations
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

count_calls
for entry in $list; do
    for work in randread randwrite; do
        calls_of ${entry%%=*} ${entry#*=} $work measure ${entry#*=} $work 4k $SECONDS_EACH
    done
done
