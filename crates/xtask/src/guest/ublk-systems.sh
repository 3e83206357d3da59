set -e
# gone: deletes $device.
gone() {
    f2fs ublk delete ${device#/dev/ublkb}
    for attempt in $(seq 100); do
        [ -e $device ] || return 0
        usleep 100000
    done
    echo "$device is still there"
    return 1
}
# on NAME MKFS...: a new file system, mounted.
on() {
    name=$1
    shift
    "$@" $device > /tmp/said 2>&1 || { cat /tmp/said; exit 1; }
    mount -t $name $device /mnt
}
# same: what is mounted is the same after another mount.
same() {
    guest-agent manifest /mnt > /tmp/changed
    umount /mnt
    mount -t $name -o ro $device /mnt
    guest-agent manifest /mnt > /tmp/there
    umount /mnt
    cmp /tmp/changed /tmp/there
    echo "$(wc -l < /tmp/there) paths"
}
# copied: programs are copied, copied again from the device, and partly removed and overwritten.
copied() {
    cp -a /bin /mnt/one
    sync
    umount /mnt
    mount -t $name $device /mnt
    cp -a /mnt/one /mnt/two
    rm -r /mnt/one
    sync
    dd if=/bin/f2fs of=/mnt/two/f2fs bs=4096 skip=7 seek=100 count=300 conv=notrunc 2> /dev/null
    for program in guest-agent busybox; do
        cmp /bin/$program /mnt/two/$program
    done
    same
}

echo "== ext4"
device=$(f2fs ublk add --memory 256M)
on ext4 $LOADER /bin/mkfs.ext4 -q -F
copied
gone
echo "== ext4: ok"

echo "== XFS"
device=$(f2fs ublk add --memory 384M --queues 2)
on xfs $LOADER /bin/mkfs.xfs -q -f
copied
gone
echo "== XFS: ok"

echo "== Btrfs"
device=$(f2fs ublk add --memory 256M)
on btrfs $LOADER /bin/mkfs.btrfs -q -f
copied
gone
echo "== Btrfs: ok"

echo "== Btrfs on zones"
device=$(f2fs ublk add --zoned 768M:16M)
on btrfs $LOADER /bin/mkfs.btrfs -q -f -O zoned -d single -m single
copied
gone
echo "== Btrfs on zones: ok"

echo "== F2FS on zones"
device=$(f2fs ublk add --zoned 512M:8M:7M,conventional=8,open=8,active=8)
on f2fs $LOADER /bin/mkfs.f2fs -q -f -m
guest-agent make --scale small /mnt > /dev/null
umount /mnt
mount -t f2fs $device /mnt
guest-agent change --scale small /mnt > /dev/null
same
f2fs check $device
f2fs manifest $device > /tmp/here
cmp /tmp/there /tmp/here
gone
echo "== F2FS on zones: ok"

echo "== zonefs"
device=$(f2fs ublk add --zoned 64M:8M:6M,conventional=2)
guest-agent zonefs $device
mount -t zonefs $device /mnt
[ "$(ls /mnt/cnv | wc -l) $(ls /mnt/seq | wc -l)" = "1 6" ]
dd if=/bin/f2fs of=/tmp/content bs=64k count=32 2> /dev/null
# A conventional zone takes writes anywhere, a sequential one at its pointer only.
dd if=/tmp/content of=/mnt/cnv/0 bs=64k oflag=direct conv=notrunc 2> /dev/null
dd if=/tmp/content of=/mnt/seq/0 bs=64k oflag=direct conv=notrunc 2> /dev/null
dd if=/tmp/content of=/mnt/seq/5 bs=64k oflag=direct conv=notrunc 2> /dev/null
if dd if=/tmp/content of=/mnt/seq/1 bs=64k seek=1 count=1 oflag=direct conv=notrunc 2> /dev/null; then exit 1; fi
# Three times 2 MiB fill a zone of 6 MiB.
for time in 1 2; do
    dd if=/tmp/content of=/mnt/seq/5 bs=64k seek=$((time * 32)) oflag=direct conv=notrunc 2> /dev/null
done
if dd if=/tmp/content of=/mnt/seq/5 bs=64k seek=96 count=1 oflag=direct conv=notrunc 2> /dev/null; then exit 1; fi
umount /mnt
mount -t zonefs $device /mnt
[ "$(stat -c %s /mnt/seq/0) $(stat -c %s /mnt/seq/1) $(stat -c %s /mnt/seq/5)" = "2097152 0 6291456" ]
cmp /tmp/content /mnt/seq/0
dd if=/mnt/cnv/0 bs=64k count=32 2> /dev/null | cmp - /tmp/content
for time in 0 1 2; do
    dd if=/mnt/seq/5 bs=64k skip=$((time * 32)) count=32 2> /dev/null | cmp - /tmp/content
done
# Emptied is reset.
truncate -s 0 /mnt/seq/5
dd if=/tmp/content of=/mnt/seq/5 bs=64k oflag=direct conv=notrunc 2> /dev/null
cmp /tmp/content /mnt/seq/5
umount /mnt
$LOADER /bin/blkzone report $device > /tmp/zones
cat /tmp/zones
gone
echo "== zonefs: ok"
