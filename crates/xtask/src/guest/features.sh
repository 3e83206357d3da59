set -e
run() {
    program=$1
    shift
    /bin/$LOADER --library-path /bin /bin/$program "$@"
}
disk=$(device features)
mount -t f2fs -o compress_algorithm=lz4,compress_log_size=2 $disk /mnt
cd /mnt

mkdir fold
run f2fs_io setflags casefold fold
echo text > fold/ReadMe.TXT
echo folds > "fold/Ünïcode Straße"
echo bytes > "fold/$(printf '\377\376 no text')"
mkdir fold/Sub
i=0
while [ $i -lt 400 ]; do
    echo $i > fold/Sub/File-$i
    echo $i > fold/Sub/Größe-$i
    i=$((i + 1))
done

mkdir packed
run f2fs_io setflags compression packed
yes 'compress me, please' | head -c 14000000 > packed/text
head -c 14000000 /dev/urandom > packed/random
{ head -c 100000 /dev/urandom; yes abc | head -c 200000; head -c 50001 /dev/urandom; } > packed/mixed
: > packed/empty
echo small > packed/small
yes data | head -c 400000 > packed/released
yes hole | dd of=packed/sparse bs=4096 count=8 seek=3000 2> /dev/null
sync
run f2fs_io release_cblocks packed/released

head -c 64 /dev/urandom > /tmp/key
id=$(run xfs_io -c add_enckey /mnt < /tmp/key)
id=${id##* }
echo $id > /share/key
mkdir secret both old
run xfs_io -c "set_encpolicy -v 2 -f 3 $id" secret
run xfs_io -c "set_encpolicy -v 2 -f 0 $id" both
run f2fs_io setflags casefold both
run xfs_io -c "add_enckey -d 0000111122223333" /mnt < /tmp/key
run xfs_io -c "set_encpolicy 0000111122223333" old
long=$(printf '%*s' 255 '' | tr ' ' n)
for length in 1 15 16 17 31 32 33 63 64 100 140 148 149 150 160 161 200 223 224 225 254 255; do
    name=$(echo $long | cut -c 1-$length)
    echo $length > secret/$name
    echo $length > both/$name
    echo $length > old/$name
done
mkdir secret/dir both/Dir
i=0
while [ $i -lt 300 ]; do
    echo $i > secret/dir/file-$i
    : > both/Dir/File-$i
    i=$((i + 1))
done
head -c 300000 /dev/urandom > secret/data
ln secret/data secret/linked
mknod secret/null c 1 3
mkfifo secret/fifo
ln -s target secret/link
ln -s $long/$long/$long secret/longer
ln -s x old/link

mkdir verified
: > verified/empty
echo small > verified/small
head -c 1000001 /dev/urandom > verified/large
echo secret > secret/verified
for file in verified/empty verified/small verified/large secret/verified; do
    run fsverity enable $file
done
chown -R 1000:1000 verified

sync
run f2fs_io get_cblocks packed/text > /share/saved
guest-agent manifest /mnt > /share/with-key
cd /
umount /mnt
mount -t f2fs -o ro $disk /mnt
guest-agent manifest /mnt > /share/no-key
umount /mnt

# New files that were synced, and a stop without a checkpoint: the names that are brought back are ciphertext, or folded ones.
disk=$(device stopped)
mount -t f2fs $disk /mnt
cd /mnt
id=$(run xfs_io -c add_enckey /mnt < /tmp/key)
id=${id##* }
mkdir fold secret both
run f2fs_io setflags casefold fold
run xfs_io -c "set_encpolicy -v 2 -f 0 $id" secret
run xfs_io -c "set_encpolicy -v 2 -f 3 $id" both
run f2fs_io setflags casefold both
echo old > fold/Old
echo old > secret/old
sync
i=0
while [ $i -lt 60 ]; do
    for name in fold/New-$i fold/Größe-$i secret/new-$i both/New-$i secret/$i$long; do
        name=$(echo $name | cut -c 1-240)
        echo $i > $name
        sync $name
    done
    i=$((i + 1))
done
echo lost > fold/never-synced
run f2fs_io shutdown 2 /mnt
cd /
umount /mnt
f2fs manifest $disk > /share/stopped-here 2> /share/stopped-said
mount -t f2fs -o ro $disk /mnt
guest-agent manifest /mnt > /share/stopped
umount /mnt
