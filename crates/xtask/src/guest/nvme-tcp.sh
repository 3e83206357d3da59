# A volume on a namespace that a target exports over TCP, both in this machine. The target goes away while files are synced.
set -e
trap 'dmesg | tail -40 >&2' EXIT
nqn=nqn.2014-08.org.example:volume
nvmet=/sys/kernel/config/nvmet
ifconfig lo 127.0.0.1 up
mount -t configfs none /sys/kernel/config
mkdir $nvmet/subsystems/$nqn
echo 1 > $nvmet/subsystems/$nqn/attr_allow_any_host
echo remote > $nvmet/subsystems/$nqn/attr_serial
mkdir $nvmet/subsystems/$nqn/namespaces/1
printf %s $(device medium) > $nvmet/subsystems/$nqn/namespaces/1/device_path
echo 1 > $nvmet/subsystems/$nqn/namespaces/1/enable
port=$nvmet/ports/1
mkdir $port
echo ipv4 > $port/addr_adrfam
echo tcp > $port/addr_trtype
echo 127.0.0.1 > $port/addr_traddr
echo 4420 > $port/addr_trsvcid
comes() { ln -s $nvmet/subsystems/$nqn $port/subsystems/$nqn; }
goes() { rm $port/subsystems/$nqn; }
connect() {
    echo "transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=$nqn,nr_io_queues=2,keep_alive_tmo=2,reconnect_delay=1,$1" > /dev/nvme-fabrics
}
disconnect() {
    for controller in /sys/class/nvme/nvme*; do
        if [ "$(cat $controller/transport)" = tcp ]; then echo 1 > $controller/delete_controller; fi
    done
}
# endures LEAST DEVICE: files are synced, LEAST at least when this returns.
endures() {
    rm -f /tmp/synced
    guest-agent endure $2 --synced /tmp/synced 2> /tmp/failed &
    agent=$!
    until [ -e /tmp/synced ] && [ "$(wc -l < /tmp/synced)" -ge $1 ]; do
        kill -0 $agent
        usleep 20000
    done
}
# fails_within SECONDS: the agent ends with an error.
fails_within() {
    for attempt in $(seq $(($1 * 10))); do
        if ! kill -0 $agent 2> /dev/null; then
            if wait $agent; then
                echo "no error"
                exit 1
            fi
            echo "failed after $((attempt / 10)) s: $(tr '\n' ' ' < /tmp/failed)"
            return 0
        fi
        usleep 100000
    done
    echo "still waiting after $1 s"
    exit 1
}
# held DEVICE: all that was promised is there; the volume is empty again afterwards.
held() {
    guest-agent endured $1 --synced /tmp/synced --least 20
    f2fs check $1
    mount -t f2fs $1 /mnt
    rm -r /mnt/endured
    umount /mnt
}

comes
connect ctrl_loss_tmo=120
disk=$(device remote)
echo "$disk, $(cat /sys/block/${disk#/dev/}/queue/write_cache)"
f2fs format $disk
endures 20 $disk
goes
sleep 3
before=$(wc -l < /tmp/synced)
sleep 2
if [ $before != $(wc -l < /tmp/synced) ]; then
    echo "files were synced without a target"
    exit 1
fi
comes
for attempt in $(seq 300); do
    [ $(wc -l < /tmp/synced) -ge $((before + 20)) ] && break
    kill -0 $agent
    usleep 100000
done
echo "$before files synced when the target went, $(wc -l < /tmp/synced) some time after it came back"
test $(wc -l < /tmp/synced) -ge $((before + 20))
kill -9 $agent
wait $agent || true
held $disk
disconnect
echo "== back: ok"

connect ctrl_loss_tmo=120,fast_io_fail_tmo=3
disk=$(device remote)
endures 20 $disk
goes
fails_within 30
comes
# The controller connects again by itself; until then opening fails.
for attempt in $(seq 100); do
    if f2fs ls $disk > /dev/null 2> /tmp/said; then break; fi
    usleep 300000
done
held $disk
disconnect
echo "== fails fast: ok"

connect ctrl_loss_tmo=5
disk=$(device remote)
endures 20 $disk
goes
fails_within 60
sleep 3
if f2fs ls $disk 2> /tmp/said; then exit 1; fi
cat /tmp/said
comes
connect ctrl_loss_tmo=5
disk=$(device remote)
held $disk
disconnect
echo "== gone: ok"

connect ctrl_loss_tmo=120,fast_io_fail_tmo=3
disk=$(device remote)
path=/dev/ng${disk#/dev/nvme}
endures 20 $path
goes
fails_within 30
grep -q -e "NVMe status" -e "os error" /tmp/failed
comes
for attempt in $(seq 100); do
    if f2fs ls $path > /dev/null 2> /tmp/said; then break; fi
    usleep 300000
done
held $disk
f2fs manifest $path > /share/made
mount -t f2fs -o ro $disk /mnt
guest-agent manifest /mnt > /share/mounted
umount /mnt
disconnect
echo "== pass-through: ok"
trap - EXIT
