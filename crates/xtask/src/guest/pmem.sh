# Persistent memory as a block device, as a file mounted with dax, and as a character device. On each the library makes a tree, is
# killed while it syncs files, and opens the volume again; then the kernel mounts it.
set -e
trap 'dmesg | tail -30 >&2' EXIT

# endured NAME MOST WORDS...: kills the library while it syncs files on the volume that WORDS name, when it has synced MOST or so.
endured() {
    name=$1 least=$2
    shift 2
    guest-agent endure "$@" --synced /tmp/$name.synced &
    agent=$!
    while [ ! -e /tmp/$name.synced ] || [ "$(wc -l < /tmp/$name.synced)" -lt "$least" ]; do
        kill -0 $agent
        usleep 20000
    done
    kill -9 $agent
    wait $agent || true
    guest-agent endured "$@" --synced /tmp/$name.synced --least "$least"
}

# mounted NAME DEVICE OPTIONS: what the kernel sees of a volume, and some more files by it.
mounted() {
    mount -t f2fs -o "$3" "$2" /mnt
    guest-agent manifest /mnt > /share/$1.mounted
    dd if=/dev/urandom of=/mnt/by-the-kernel bs=4096 count=300 2> /dev/null
    umount /mnt
}

# mount_dax: a new ext4 on the memory.
mount_dax() {
    /bin/$LOADER --library-path /bin /bin/mkfs.ext4 -q -F -b 4096 -m 0 /dev/pmem0
    mount -t ext4 -o dax=always /dev/pmem0 /tmp/dax
}

echo "== block device"
f2fs format --force /dev/pmem0
guest-agent make --scale "$SCALE" --require-io-uring --image /dev/pmem0
endured block 40 /dev/pmem0
f2fs check /dev/pmem0
f2fs manifest /dev/pmem0 > /share/block.made
mounted block /dev/pmem0 rw
f2fs check /dev/pmem0
guest-agent pmem --block /dev/pmem0 --rounds "$ROUNDS" --milliseconds "$TIME" --csv /share/block.csv

echo "== dax file"
mkdir /tmp/dax
mount_dax
image=/tmp/dax/volume
f2fs --pmem format $image --size 128M
guest-agent make --scale "$SCALE" --pmem --image $image
endured file 40 $image --pmem
f2fs --pmem check $image
f2fs --pmem manifest $image > /share/file.made
mounted file $image loop
f2fs --pmem check $image
f2fs --pmem ls $image /by-the-kernel
guest-agent pmem $image --rounds "$ROUNDS" --milliseconds "$TIME" --csv /share/file.csv
rm $image

echo "== journal"
# The volume behind a queue of requests, its journal in a file that is mapped. Between the kill and the way back the kernel looks at a copy.
journal=/tmp/dax/journal
f2fs format /tmp/dax/volume --size 100M
endured_journal() {
    guest-agent endure $image --journal $journal --synced /tmp/journal.synced &
    agent=$!
    while [ ! -e /tmp/journal.synced ] || [ "$(wc -l < /tmp/journal.synced)" -lt 400 ]; do
        kill -0 $agent
        usleep 20000
    done
    kill -9 $agent
    wait $agent || true
}
endured_journal
f2fs journal inspect $journal
if f2fs mkdir $image /refused 2> /tmp/said; then exit 1; fi
grep -q "was left with synced files in the journal" /tmp/said
cp $image /tmp/copy
mount -t f2fs -o loop /tmp/copy /mnt
ls /mnt/endured > /dev/null
umount /mnt
rm /tmp/copy
guest-agent endured $image --journal $journal --synced /tmp/journal.synced --least 400
f2fs check $image
f2fs manifest $image > /share/journal.made
mounted journal $image loop
f2fs check $image
rm $image $journal
umount /tmp/dax

echo "== character device"
# What `ndctl create-namespace -f -e namespace0.0 -m devdax` does.
nd=/sys/bus/nd
echo namespace0.0 > $nd/drivers/nd_pmem/unbind
seed=$(cat $nd/devices/region0/dax_seed)
echo ram > $nd/devices/$seed/mode
echo 6b8b4567-327b-43c6-a3d4-1b5c66334873 > $nd/devices/$seed/uuid
echo 2097152 > $nd/devices/$seed/align
echo namespace0.0 > $nd/devices/$seed/namespace
echo $seed > $nd/drivers/dax_pmem/bind
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    [ -e /dev/dax0.0 ] && break
    usleep 200000
done
ls -l /dev/dax*
character=/sys/bus/dax/devices/dax0.0
echo "$(cat $character/size) bytes at $(cat $character/resource)"
f2fs format --force /dev/dax0.0
guest-agent make --scale "$SCALE" --pmem --image /dev/dax0.0
endured character 40 /dev/dax0.0 --pmem
f2fs check /dev/dax0.0
f2fs manifest /dev/dax0.0 > /share/character.made
offset=$(($(cat $character/resource) - $(cat $nd/devices/region0/resource)))

# The same memory as a block device again, whole: the volume begins where the character device did.
echo $seed > $nd/drivers/dax_pmem/unbind
echo "" > $nd/devices/$seed/namespace || true
echo 1 > $nd/devices/namespace0.0/force_raw
echo namespace0.0 > $nd/drivers/nd_pmem/bind
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    [ -e /dev/pmem0 ] && break
    usleep 200000
done
loop=$(losetup -f)
losetup -o $offset $loop /dev/pmem0
mounted character $loop rw
f2fs check $loop
losetup -d $loop

echo "== bad blocks"
# A namespace that is forced to be raw has no dax, and the head of the character device has to go.
dd if=/dev/zero of=/dev/pmem0 bs=1M count=4 2> /dev/null
echo namespace0.0 > $nd/drivers/nd_pmem/unbind
echo 0 > $nd/devices/namespace0.0/force_raw
echo namespace0.0 > $nd/drivers/nd_pmem/bind
for attempt in 1 2 3 4 5 6 7 8 9 10; do
    [ -e /dev/pmem0 ] && break
    usleep 200000
done
mount_dax
f2fs --pmem format $image --size 64M
# The kernel remembers 262,144 of them at most, and newer ones refuse more. It shows them within 4096 bytes, and newer
# ones warn of more.
echo "0 131072" > /sys/block/pmem0/badblocks
if f2fs --pmem ls $image 2> /tmp/refused; then
    echo "a file in bad memory was opened"
    exit 1
fi
cat /tmp/refused
grep -q "are bad" /tmp/refused
trap - EXIT
