set -e
gone() {
    for attempt in $(seq 200); do
        [ -e $1 ] || return 0
        usleep 50000
    done
    echo "$1 is still there"
    return 1
}
while read -r name script; do
    ground=${script%%:*}
    [ -e /tmp/$ground.img ] || cp /share/$ground.img /tmp/$ground.img
    cp /tmp/$ground.img /tmp/image
    echo "${script#*:}" | tr ';' '\n' > /tmp/ops
    device=$(f2fs ublk add --file /tmp/image --record /tmp/log)
    mount -t f2fs -o fsync_mode=$MODE $device /mnt
    kernel-trials perform /mnt --script /tmp/ops --log /tmp/log > /tmp/report
    umount /mnt
    echo "$(stat -c %s /tmp/log) closed" >> /tmp/report
    f2fs ublk delete ${device#/dev/ublkb}
    gone $device
    cp /tmp/report /share/$name.report
    cp /tmp/log /share/$name.log
    rm /tmp/image /tmp/log /tmp/report
done < /share/scripts
