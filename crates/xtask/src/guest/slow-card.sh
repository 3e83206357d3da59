set -e
# card: a copy of the aged volume on a card, whose device is $device.
card() {
    cp /tmp/aged /tmp/image
    device=$(f2fs ublk add --file /tmp/image --slow card-a)
}
gone() {
    f2fs ublk delete ${device#/dev/ublkb}
    while [ -e $device ]; do usleep 50000; done
    f2fs check /tmp/image > /tmp/said || { cat /tmp/said; exit 1; }
    rm /tmp/image
}
cp /share/aged /tmp/aged
for mode in adaptive lfs; do
    card
    mount -t f2fs -o mode=$mode,background_gc=off $device /mnt
    echo "Linux $mode $(guest-agent slow-card mounted /mnt/new --blocks $BLOCKS)"
    umount /mnt
    gone
done
for way in $WAYS; do
    card
    guest-agent slow-card library $device --way $way --blocks $BLOCKS
    gone
done
