set -e

# store WHO ZONE SIZE CONVENTIONAL: RocksDB on Linux's F2FS or on a mount of the library, on zones served by this project.
# Linux comes first, and its room says how many keys there are. Either may find no room for what they leave behind.
store() {
    device=$(f2fs ublk add --zoned ${3}M:${2}M,conventional=$4 --queues 1 --depth 64)
    stat=/sys/block/${device#/dev/}/stat
    if [ $1 = Linux ]; then
        $LOADER /bin/mkfs.f2fs -q -f -m $device
        mount -t f2fs $device /mnt
        keys=$(($(df -m /mnt | awk 'END { print $4 }') * SHARE * 10486 / (VALUE + 16)))
    else
        f2fs format --force -m $device
        f2fs mount $device /mnt
    fi
    if overwritten; then
        echo "zone $2, $1: $keys keys, $wrote written, $given given"
    elif grep -q "No space left" /tmp/said; then
        echo "zone $2, $1: no room"
    else
        tail -n 20 /tmp/said
        dmesg | tail
        exit 1
    fi
    case $1 in
    Linux) umount /mnt ;;
    *) f2fs umount /mnt ;;
    esac
    f2fs check $device
    f2fs ublk delete ${device#/dev/ublkb}
    sleep 1
}

# All keys are written, and then overwritten in an order that is one whoever is below; that is counted (bytes).
overwritten() {
    bench filluniquerandom,compact || return 1
    sync
    before=$(awk '{ print $7 }' $stat)
    bench overwrite,waitforcompaction --use_existing_db=1 --writes=$((keys * TURNOVER / 100)) --statistics=1 || return 1
    sync
    given=$((($(awk '{ print $7 }' $stat) - before) * 512))
    wrote=$(awk '/^rocksdb.(wal|flush.write|compact.write).bytes COUNT/ { sum += $4 } END { printf "%d", sum }' /tmp/said)
    bench verifychecksum --use_existing_db=1
}

# bench BENCHMARKS FLAGS: its output is in /tmp/said.
bench() {
    work=$1
    shift
    $LOADER /bin/db_bench --db=/mnt/store --num=$keys --value_size=$VALUE $FLAGS --benchmarks=$work "$@" > /tmp/said 2>&1
}
