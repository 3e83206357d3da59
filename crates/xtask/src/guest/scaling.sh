# FxMark on Linux's F2FS and with the library, in turn, on the same RAM disk, which mkfs.f2fs formats in front of each
# measurement. Rounds follow each other; after SECONDS_ALL no further measurement begins. The log ends with the table.
set -e
trap 'dmesg | tail -30 >&2' EXIT
rmmod brd
insmod /modules/brd.ko rd_nr=1 rd_size=$((MIB * 1024))
disk=/dev/ram0
WORKLOADS="mwul mwum mwcl mwcm mwrl drbl dwol"
csv=/share/scaling.csv
up() { cut -d. -f1 /proc/uptime; }
end=$(($(up) + SECONDS_ALL))

new_volume() {
    $LOADER /bin/mkfs.f2fs -f -q $disk > /tmp/mkfs 2>&1 || { cat /tmp/mkfs; exit 1; }
}

# measured SIDE WORDS...: runs the workload, and notes its rate.
measured() {
    side=$1
    shift
    f2fs-release "$@" --workload $workload --threads $threads --files $operations --csv /tmp/rate.csv > /dev/null
    echo "$round,$side,$(tail -n 1 /tmp/rate.csv)" >> $csv
    rm /tmp/rate.csv
}

linux() {
    new_volume
    mount -t f2fs $disk /mnt
    measured linux bench fxmark --directory /mnt
    umount /mnt
}

# No NID is held back, since none is on the other side; reads and writes come from a page cache on both.
library() {
    new_volume
    measured library --page-cache 512M bench fxmark --image $disk --force --formatted --policy sharded \
        --free-nids 18446744073709551615
}

for round in $(seq $ROUNDS); do
    for threads in $THREADS; do
        for workload in $WORKLOADS; do
            [ $(up) -lt $end ] || break 3
            case $workload in
                mwu? | mwc?) operations=$FILES ;;
                *) operations=$CALLS ;;
            esac
            if [ $((round % 2)) = 1 ]; then
                linux
                library
            else
                library
                linux
            fi
        done
    done
done

echo "== table"
awk -F, -v workloads="$WORKLOADS" '
    # The median of values[1..count], which are sorted by it.
    function median(values, count,    one, other, kept) {
        for (one = 2; one <= count; one++) {
            kept = values[one]
            for (other = one - 1; other > 0 && values[other] > kept; other--) values[other + 1] = values[other]
            values[other + 1] = kept
        }
        return values[int((count + 1) / 2)]
    }
    {
        rate[$1, $2, $3, $5] = $8
        if ($1 > rounds) rounds = $1
        if ($5 > most) most = $5
    }
    END {
        printf "%-8s %7s %6s %12s %7s %12s %7s %7s   %s\n", "workload", "threads", "rounds", "Linux op/s", "x one", \
            "library op/s", "x one", "ratio", "least..most"
        number = split(workloads, name, " ")
        for (at = 1; at <= number; at++) {
            first_linux = first_library = 0
            for (threads = 1; threads <= most; threads++) {
                count = 0
                for (round = 1; round <= rounds; round++) {
                    if (!((round, "linux", name[at], threads) in rate)) continue
                    if (!((round, "library", name[at], threads) in rate)) continue
                    count++
                    theirs[count] = rate[round, "linux", name[at], threads] + 0
                    ours[count] = rate[round, "library", name[at], threads] + 0
                    ratio[count] = ours[count] / theirs[count]
                }
                if (!count) continue
                linux = median(theirs, count)
                library = median(ours, count)
                if (!first_linux) { first_linux = linux; first_library = library }
                middle = median(ratio, count)
                printf "%-8s %7d %6d %12.0f %7.2f %12.0f %7.2f %7.2f   %.2f..%.2f\n", name[at], threads, count, linux, \
                    linux / first_linux, library, library / first_library, middle, ratio[1], ratio[count]
            }
        }
    }' $csv
trap - EXIT
