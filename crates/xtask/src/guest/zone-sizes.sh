set -e
# kernel ZONE SIZE CONVENTIONAL: a store on the kernel's F2FS, on zones served by this project.
kernel() {
    device=$(f2fs ublk add --zoned ${2}M:${1}M,conventional=$3 --queues 1 --depth 64)
    $LOADER /bin/mkfs.f2fs -q -f -m $device > /tmp/said || { cat /tmp/said; exit 1; }
    mount -t f2fs $device /mnt
    mkdir /mnt/store
    echo "zone $1: $(guest-agent lsm /mnt/store --stat /sys/block/${device#/dev/}/stat --turnover $TURNOVER)"
    umount /mnt
    f2fs ublk delete ${device#/dev/ublkb}
    sleep 1
}
