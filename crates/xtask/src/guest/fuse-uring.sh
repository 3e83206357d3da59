# A mount by io_uring: refused while it is off; a tree, files without a name, fio, a killed server, an unmount while it is
# used; rates beside a mount by /dev/fuse.
set -e
trap 'dmesg | tail -30 >&2' EXIT
mkdir -p /mnt
parameter=/sys/module/fuse/parameters/enable_uring

# image NAME: a new volume.
image() {
    truncate -s 512M /tmp/$1
    f2fs-release format /tmp/$1 > /dev/null
}
# sound NAME: it is what it should be.
sound() {
    f2fs-release check /tmp/$1
}
# rings NAME OPTION: mounts it by io_uring.
rings() {
    f2fs-release mount -o transport=uring,$2 /tmp/$1 /mnt
    server=$(pidof f2fs-release)
    # All queues have entries: one thread for a processor at least.
    [ $(cat /proc/$server/task/*/comm | grep -c f2fs-ring) -ge $(nproc) ]
}

image tree
echo N > $parameter
if f2fs-release mount -o transport=uring /tmp/tree /mnt 2> /tmp/said; then exit 1; fi
cat /tmp/said
grep -q "echo Y > $parameter" /tmp/said
echo Y > $parameter
echo "== off: ok"

rings tree commit=60
guest-agent make --scale $SCALE /mnt
guest-agent manifest --defer /share/mounted.large /mnt > /share/mounted.one
# A second look, of a mount that knows nothing of the first.
f2fs-release umount /mnt
rings tree ro
guest-agent manifest --defer /share/mounted.large /mnt > /share/mounted
cmp /share/mounted.one /share/mounted
f2fs-release umount /mnt
sound tree
f2fs-release manifest /tmp/tree > /share/made
echo "== tree: ok"

image unnamed
rings unnamed commit=0
mkdir /mnt/dir
guest-agent unnamed /mnt/dir
f2fs-release umount /mnt
sound unnamed
[ "$(f2fs-release ls /tmp/unnamed /dir)" = whole ]
echo "== unnamed: ok"

# The server is killed while a file without a name is open that a checkpoint knows.
rings unnamed commit=0
mkdir /mnt/lost
guest-agent unnamed /mnt/lost --hold /tmp/holds &
agent=$!
until [ -e /tmp/holds ]; do
    kill -0 $agent
    usleep 50000
done
kill -9 $server
# Nobody hangs: what was asked has an error.
if ls /mnt/lost; then exit 1; fi
kill -9 $agent
wait $agent || true
f2fs-release umount /mnt
rings unnamed commit=0
[ "$(ls /mnt/lost)" = whole ]
f2fs-release umount /mnt
sound unnamed
echo "== killed: ok"

image fio
for cache in through writeback none; do
    rings fio cache=$cache
    $LOADER /bin/fio --name=verify --directory=/mnt --size=24m --numjobs=2 --thread --rw=randrw --bsrange=4k-128k \
        --verify=crc32c --verify_fatal=1 --end_fsync=1 --minimal > /tmp/said || { cat /tmp/said; exit 1; }
    f2fs-release umount /mnt
    sound fio
done
echo "== fio: ok"

# An unmount while programs work is refused; a signal to the server ends it all the same.
rings fio commit=0
guest-agent mount-rates /mnt --name busy --threads 4 --time 30000 --csv /tmp/busy &
agent=$!
sleep 2
if umount /mnt 2> /tmp/said; then exit 1; fi
kill $server
if wait $agent; then exit 1; fi
for attempt in $(seq 200); do
    kill -0 $server 2> /dev/null || break
    usleep 100000
done
if kill -0 $server 2> /dev/null || grep -q " /mnt " /proc/mounts; then exit 1; fi
sound fio
echo "== busy: ok"

image rates
for round in $(seq $ROUNDS); do
    for transport in device uring; do
        f2fs-release mount -o transport=$transport,commit=0 /tmp/rates /mnt
        guest-agent mount-rates /mnt --name $transport --time $TIME --csv /share/rates
        f2fs-release umount /mnt
    done
done
sound rates
echo "== rates: ok"
trap - EXIT
