set -e
mount -t configfs none /sys/kernel/config

# null NAME MIB ZONE CAPACITY CONVENTIONAL OPEN ACTIVE: a device in memory, with zones if ZONE is not 0.
null() {
    at=/sys/kernel/config/nullb/$1
    mkdir $at
    echo $2 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/memory_backed; echo 1 > $at/discard
    if [ $3 != 0 ]; then
        echo 0 > $at/discard; echo 1 > $at/zoned
        echo $3 > $at/zone_size; echo $4 > $at/zone_capacity; echo $5 > $at/zone_nr_conv
        echo $6 > $at/zone_max_open; echo $7 > $at/zone_max_active
    fi
    echo 1 > $at/power
    test -b /dev/$1
}

# on NAME FIRST ZONED: the devices of the next volume; no FIRST is one device.
on() {
    name=$1 first=$3 others=
    if [ -n "$2" ]; then
        first=$2
        others="--device $3"
    fi
    limits=/sys/block/${3#/dev/}/queue
    echo "== $name: zones of $(cat $limits/chunk_sectors) sectors of $(cat $limits/logical_block_size) bytes," \
        "$(cat $limits/max_open_zones) open, $(cat $limits/max_active_zones) active"
}

# nulls NAME FIRST SIZE ZONE CAPACITY CONVENTIONAL OPEN ACTIVE: the devices are in memory.
nulls() {
    null $1-z $3 $4 $5 $6 $7 $8
    if [ $2 != 0 ]; then
        null $1-c $2 0 0 0 0 0
        on $1 /dev/$1-c /dev/$1-z
    else
        on $1 "" /dev/$1-z
    fi
}

# gone NAME: gives the memory of such devices back.
gone() {
    for at in /sys/kernel/config/nullb/$1-*; do
        echo 0 > $at/power
        rmdir $at
    done
}

# sound: neither check finds anything.
sound() {
    f2fs check $first $others
    $LOADER /bin/fsck.f2fs --dry-run $first > /tmp/fsck || { cat /tmp/fsck; exit 1; }
    if grep -q -e '\[Fail\]' -e '\[ASSERT\]' /tmp/fsck; then
        cat /tmp/fsck
        exit 1
    fi
}

# shown STATE: the tree by the kernel, and by the library.
shown() {
    mount -t f2fs -o ro $first /mnt
    guest-agent manifest --defer /share/$name.$1.large /mnt > /share/$name.$1
    umount /mnt
    f2fs manifest $first $others > /share/$name.$1.here
}

# volume: each side makes it, and goes on with what the other side left.
volume() {
    guest-agent zoned-format $first $others --mkfs "$LOADER /bin/mkfs.f2fs"
    sound
    mount -t f2fs $first /mnt
    guest-agent make --scale $SCALE /mnt
    umount /mnt
    sound
    shown made
    mount -t f2fs $first /mnt
    guest-agent change --scale $SCALE /mnt
    umount /mnt
    sound
    shown changed
    # The library goes on with what the kernel left, and the kernel with that.
    f2fs mkdir $first $others /ours
    for number in 1 2 3 4 5 6; do
        dd if=/dev/urandom of=/tmp/part bs=100000 count=30 2> /dev/null
        f2fs put $first $others /tmp/part /ours/$number
    done
    f2fs rm $first $others /ours/3
    sound
    shown ours
    mount -t f2fs $first /mnt
    rm /mnt/ours/1
    cp /mnt/ours/2 /mnt/ours/7
    umount /mnt
    sound
    shown both
}

# cuts: hard cuts on either side, each found again by the other; and logs off their write pointers, which a repair moves.
cuts() {
    rm -f /tmp/synced
    guest-agent endure $first $others --synced /tmp/synced &
    agent=$!
    until [ -e /tmp/synced ] && [ "$(wc -l < /tmp/synced)" -ge 30 ]; do
        kill -0 $agent
        usleep 20000
    done
    kill -9 $agent
    wait $agent || true
    # The kernel recovers what the library synced, once the last requests of the dead are over.
    for attempt in $(seq 100); do
        if mount -t f2fs $first /mnt 2> /tmp/said; then break; fi
        usleep 100000
    done
    grep -q " /mnt f2fs" /proc/mounts || { cat /tmp/said; exit 1; }
    umount /mnt
    sound
    guest-agent endured $first $others --synced /tmp/synced --least 30
    sound
    # The library recovers what the kernel synced.
    mount -t f2fs $first /mnt
    mkdir /mnt/cut
    sync
    for number in 1 2 3 4 5 6 7 8; do
        dd if=/dev/urandom of=/tmp/cut.$number bs=30000 count=$number 2> /dev/null
        dd if=/tmp/cut.$number of=/mnt/cut/$number bs=240000 conv=fsync 2> /dev/null
        dd if=/dev/urandom of=/mnt/cut/lost bs=1M count=3 2> /dev/null
    done
    $LOADER /bin/f2fs_io shutdown 2 /mnt > /tmp/said || { cat /tmp/said; exit 1; }
    umount /mnt
    f2fs mkdir $first $others /after-cut
    for number in 1 2 3 4 5 6 7 8; do
        rm -f /tmp/back
        f2fs get $first $others /cut/$number /tmp/back
        cmp /tmp/back /tmp/cut.$number
    done
    sound
    # A block more in each zone that is written in part.
    zoned=${others#--device }
    zoned=${zoned:-$first}
    f2fs zones $zoned | grep -e "implicitly open" -e closed > /tmp/active
    sed -n 's/^zone [0-9]* at block \([0-9]*\): [a-z ]*, \([0-9]*\) .*/\1 \2/p' /tmp/active > /tmp/pointers
    test -s /tmp/pointers
    while read -r start written; do
        dd if=/dev/zero of=$zoned bs=4096 seek=$((start + written)) count=1 oflag=direct 2> /dev/null
    done < /tmp/pointers
    f2fs check $first $others > /tmp/said
    grep -q "write pointer" /tmp/said || { cat /tmp/said /tmp/active /tmp/pointers; exit 1; }
    f2fs check --repair --backup /tmp/backup $first $others > /tmp/said && exit 1
    grep -q "log: goes on" /tmp/said
    rm /tmp/backup
    sound
    shown cut
}
