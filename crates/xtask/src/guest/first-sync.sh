# What happens below the fsyncs that follow a checkpoint: on a device whose requests take 200 ms each, and through dm-log-writes.
set -e
tracing=/sys/kernel/tracing
[ -e $tracing/events ] || mount -t tracefs tracing $tracing
mount -t configfs none /sys/kernel/config
at=/sys/kernel/config/nullb/late
mkdir $at
# A volatile cache, and completions by a timer.
echo 64 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/memory_backed; echo 16 > $at/cache_size
echo 2 > $at/irqmode; echo 200000000 > $at/completion_nsec; echo 1 > $at/power
echo "late: cache $(cat /sys/block/late/queue/write_cache), fua $(cat /sys/block/late/queue/fua)"
$LOADER /bin/mkfs.f2fs -q /dev/late
hundredths() {
    read up idle < /proc/uptime
    echo $((${up%.*} * 100 + 1${up#*.} - 100))
}
# synced NAME: rewrites 100 bytes of the file, which are in its inode, and says how long its fsync took.
synced() {
    start=$(hundredths)
    dd if=/dev/urandom of=/mnt/file bs=100 count=1 conv=notrunc,fsync 2> /dev/null
    echo "took $1 $(($(hundredths) - start))"
}
for mode in posix strict; do
    mount -t f2fs -o fsync_mode=$mode /dev/late /mnt
    echo begun > /mnt/file
    sync
    for event in block/block_rq_issue block/block_rq_complete f2fs/f2fs_sync_file_enter f2fs/f2fs_sync_file_exit; do
        echo 1 > $tracing/events/$event/enable
    done
    for round in 1 2; do
        for which in first second third; do
            echo > $tracing/trace
            synced $mode-$round-$which
            cp $tracing/trace /share/$mode-$round-$which.trace
        done
        sync
    done
    umount /mnt
done
echo 0 > $at/power
rmdir $at

# The same, recorded by the kernel's own recorder.
at=/sys/kernel/config/nullb/below
mkdir $at
echo 64 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/memory_backed; echo 16 > $at/cache_size
echo 2 > $at/irqmode; echo 20000000 > $at/completion_nsec; echo 1 > $at/power
at=/sys/kernel/config/nullb/log
mkdir $at
echo 256 > $at/size; echo 4096 > $at/blocksize; echo 1 > $at/memory_backed; echo 1 > $at/power
$LOADER /bin/mkfs.f2fs -q /dev/below
$LOADER /bin/dmsetup --noudevsync --noudevrules create recorded --table "0 $(cat /sys/block/below/size) log-writes /dev/below /dev/log"
device=/dev/mapper/recorded
[ -e $device ] || device=/dev/$(basename /sys/block/dm-*)
mount -t f2fs $device /mnt
echo begun > /mnt/file
sync
for which in first second; do
    dd if=/dev/urandom of=/mnt/file bs=100 count=1 conv=notrunc,fsync 2> /dev/null
    $LOADER /bin/dmsetup message recorded 0 mark $which
done
umount /mnt
$LOADER /bin/dmsetup --noudevsync --noudevrules remove recorded
dd if=/dev/log of=/share/writes bs=1M count=64 2> /dev/null
