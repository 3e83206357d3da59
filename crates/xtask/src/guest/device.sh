#!/bin/busybox sh
# device SERIAL: prints the path of the disk with this serial number; waits a while for it to appear.
for attempt in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    for disk in /sys/block/*; do
        # One path of several to a namespace.
        [ "$(cat "$disk/hidden" 2> /dev/null)" = 1 ] && continue
        for file in "$disk/serial" "$disk/device/serial"; do
            if [ -r "$file" ] && [ "$(tr -d ' \n' < "$file")" = "$1" ]; then
                echo "/dev/${disk##*/}"
                exit 0
            fi
        done
    done
    usleep 250000
done
echo "no disk has the serial number $1" >&2
exit 1
