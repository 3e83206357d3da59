# The same flow of a mail server on ext4, on Linux's F2FS and with the library, each on the same namespace, with the journal in
# several places. Rounds follow each other, so that each has all of them.
set -e
trap 'dmesg | tail -30 >&2' EXIT
data=$(device data)
second=$(device second)
mkdir /tmp/dax

if [ "$FLUSH_MS" != 0 ]; then
    # Flushes of the data's device take so long; reads and writes pass.
    size=$(cat /sys/block/${data#/dev/}/size)
    $LOADER /bin/dmsetup --noudevsync --noudevrules create late --table "0 $size delay $data 0 0 $data 0 0 $data 0 $FLUSH_MS"
    data=/dev/mapper/late
    [ -e $data ] || data=/dev/$(basename /sys/block/dm-*)
fi

# measured NAME WORDS...: runs the flow, and notes its rate.
measured() {
    name=$1
    shift
    f2fs-release bench varmail --threads "$THREADS" --seconds "$SECONDS_EACH" --csv /tmp/rate.csv "$@" > /dev/null
    echo "$round,$name,$(tail -n 1 /tmp/rate.csv)" >> /share/varmail.csv
    rm /tmp/rate.csv
}

# ext4 NAME MODE JOURNAL: JOURNAL is a device, or "internal".
ext4() {
    if [ $3 = internal ]; then
        $LOADER /bin/mkfs.ext4 -q -F -b 4096 $data
    else
        $LOADER /bin/mkfs.ext4 -q -F -b 4096 -O journal_dev $3
        $LOADER /bin/mkfs.ext4 -q -F -b 4096 -J device=$3 $data
    fi
    mount -t ext4 -o data=$2 $data /mnt
    measured $1 --directory /mnt
    umount /mnt
}

# f2fs_of_linux NAME: the kernel's.
f2fs_of_linux() {
    f2fs format --force $data
    mount -t f2fs $data /mnt
    measured $1 --directory /mnt
    umount /mnt
}

# library NAME MODE JOURNAL: JOURNAL is a device, "pmem", or "none".
library() {
    journal=$3
    if [ $3 = pmem ]; then
        $LOADER /bin/mkfs.ext4 -q -F -b 4096 -m 0 /dev/pmem0
        mount -t ext4 -o dax=always /dev/pmem0 /tmp/dax
        journal=/tmp/dax/journal
        dd if=/dev/zero of=$journal bs=1M count=64 2> /dev/null
    fi
    measured $1 --image $data --force --page-cache 256M --journal $journal --journal-mode $2
    if [ $3 = pmem ]; then umount /tmp/dax; fi
}

for round in $(seq $ROUNDS); do
    ext4 ext4-internal ordered internal
    ext4 ext4-nvme ordered $second
    ext4 ext4-pmem ordered /dev/pmem0
    ext4 ext4-data-internal journal internal
    ext4 ext4-data-nvme journal $second
    ext4 ext4-data-pmem journal /dev/pmem0
    f2fs_of_linux f2fs
    library library-none ordered none
    library library-nvme ordered $second
    library library-pmem ordered pmem
    library library-data-nvme journal $second
    library library-data-pmem journal pmem
done
trap - EXIT
