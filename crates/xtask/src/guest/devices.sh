# A volume on each kind of device: rates, an aged volume, a crash, checks by the library and fsck.f2fs, and the kernel's view.
set -e
trap 'dmesg | tail -30 >&2' EXIT

# sound KERNEL WORDS...: f2fs check on what WORDS name and fsck.f2fs on KERNEL find nothing.
sound() {
    kernel=$1
    shift
    f2fs check "$@"
    yes n | $LOADER /bin/fsck.f2fs --dry-run $kernel > /tmp/fsck 2>&1 || { cat /tmp/fsck; exit 1; }
    if grep -q -e '\[Fail\]' -e '\[ASSERT\]' /tmp/fsck; then
        cat /tmp/fsck
        exit 1
    fi
}

# volume NAME KERNEL WORDS...: all of it on what WORDS name, which is KERNEL to the kernel.
volume() {
    name=$1 device=$2
    shift 2
    echo "== $name"
    guest-agent rates "$@" --name $name --operations $OPERATIONS --fill $FILL --turnover $TURNOVER $CLEANING \
        --csv /share/$name.csv
    sound $device "$@"
    rm -f /tmp/synced
    guest-agent endure "$@" --synced /tmp/synced &
    agent=$!
    until [ -e /tmp/synced ] && [ "$(wc -l < /tmp/synced)" -ge $SYNCED ]; do
        kill -0 $agent
        usleep 20000
    done
    kill -9 $agent
    wait $agent || true
    guest-agent endured "$@" --synced /tmp/synced --least $SYNCED
    sound $device "$@"
    f2fs manifest "$@" > /share/$name.made
    option=ro
    if [ -f $device ]; then option=loop; fi
    mount -t f2fs -o $option $device /mnt
    guest-agent manifest /mnt > /share/$name.mounted
    umount /mnt
    echo "$name: ok"
}

volume nvme-512 $(device small) $(device small)
volume nvme-4096 $(device large) $(device large)
disk=$(device through)
volume pass-through $disk /dev/ng${disk#/dev/nvme}
volume pmem-block /dev/pmem0 /dev/pmem0

for sector in $ZONES; do
    front=$(device front-$sector)
    volume zns-$sector $front $front --device $(device zones-$sector)
done
first=$(device first)
volume three-nvme $first $first --device $(device second) --device $(device third)

mkdir /tmp/dax
$LOADER /bin/mkfs.ext4 -q -F -b 4096 -m 0 /dev/pmem0
mount -t ext4 -o dax=always /dev/pmem0 /tmp/dax
dd if=/dev/zero of=/tmp/dax/volume bs=1M count=$MAPPED 2> /dev/null
volume pmem-memory /tmp/dax/volume /tmp/dax/volume --pmem
umount /tmp/dax

ifconfig lo 127.0.0.1 up
mount -t configfs none /sys/kernel/config
nqn=nqn.2014-08.org.example:volume
nvmet=/sys/kernel/config/nvmet
mkdir $nvmet/subsystems/$nqn
echo 1 > $nvmet/subsystems/$nqn/attr_allow_any_host
echo remote > $nvmet/subsystems/$nqn/attr_serial
mkdir $nvmet/subsystems/$nqn/namespaces/1
printf %s $(device exported) > $nvmet/subsystems/$nqn/namespaces/1/device_path
echo 1 > $nvmet/subsystems/$nqn/namespaces/1/enable
mkdir $nvmet/ports/1
echo ipv4 > $nvmet/ports/1/addr_adrfam
echo tcp > $nvmet/ports/1/addr_trtype
echo 127.0.0.1 > $nvmet/ports/1/addr_traddr
echo 4420 > $nvmet/ports/1/addr_trsvcid
ln -s $nvmet/subsystems/$nqn $nvmet/ports/1/subsystems/$nqn
echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$nqn,nr_io_queues=2,ctrl_loss_tmo=60" > /dev/nvme-fabrics
volume nvme-tcp $(device remote) $(device remote)
trap - EXIT
