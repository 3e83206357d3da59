#!/bin/busybox sh
# Process 1 of the test machine. Leaves in the share: `started` once it works, `log` (the test's output), `dmesg`
# and, last of all, `status` (the test's exit status). Then the machine powers off.
export PATH=/bin
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
die() {
    echo "guest: $*"
    poweroff -f
    sleep 1000
}
while read -r module parameters; do
    # Parameters are words.
    insmod "/modules/$module.ko" $parameters || die "cannot load the module $module"
done < /modules/order
mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 share /share || die "cannot mount the share"
# Modules of this boot alone; what they need may be loaded already.
while read -r module; do
    [ -e "/sys/module/$module" ] || insmod "/share/modules/$module.ko" || die "cannot load the module $module"
done < /share/modules/order
cp /share/bin/* /bin/ 2>/dev/null
chmod +x /bin/*
echo started > /share/started || die "cannot write to the share"
cd /tmp || die "no /tmp"
sh -u /share/script > /share/log 2>&1
status=$?
dmesg > /share/dmesg
echo "$status" > /share/status
sync
umount /share
poweroff -f
sleep 1000
