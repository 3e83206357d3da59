set -e
# kernel ZONE SIZE CONVENTIONAL: a store on the kernel's F2FS, on zones served by this project. It may find no room.
kernel() {
    device=$(f2fs ublk add --zoned ${2}M:${1}M,conventional=$3 --queues 1 --depth 64)
    if ! $LOADER /bin/mkfs.f2fs -q -f -m $device > /tmp/said; then
        echo "zone $1: mkfs.f2fs makes no volume of it: $(tail -n 1 /tmp/said)"
    else
        mount -t f2fs $device /mnt
        mkdir /mnt/store
        guest-agent lsm /mnt/store --stat /sys/block/${device#/dev/}/stat --turnover $TURNOVER --live $SHARE > /tmp/said 2>&1 ||
            grep -q "No space" /tmp/said
        echo "zone $1: $(tail -n 1 /tmp/said)"
        umount /mnt
    fi
    f2fs ublk delete ${device#/dev/ublkb}
    sleep 1
}
