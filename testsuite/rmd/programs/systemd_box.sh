#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# systemd_box.sh DIRECTORY - this machine's root under an overlay, with what is in DIRECTORY/upper,
# and systemd as process 1 of it; for test_systemd.py, which runs this in namespaces of its own.
# DIRECTORY is empty again when these end.  Only units of /etc/box and those installed below
# /usr/local are there, so nothing else of the machine's is started.
set -eu
box=$1
mount --make-rprivate /
mkdir "$box/tree"
mount -t tmpfs tmpfs "$box/tree"
cp -a "$box/upper" "$box/tree/upper"
mkdir "$box/tree/work" "$box/tree/root"
mount -t overlay -o "lowerdir=/,upperdir=$box/tree/upper,workdir=$box/tree/work" overlay \
    "$box/tree/root"
cd "$box/tree/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
for where in run tmp dev; do
    mount -t tmpfs -o mode=755 tmpfs $where
done
chmod 1777 tmp
for name in null zero full random urandom tty; do
    : >dev/$name
    mount --bind /dev/$name dev/$name
done
mkdir dev/shm dev/pts
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
pivot_root . mnt
exec chroot . sh -c 'umount -l /mnt && exec env -i container=box \
    PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    SYSTEMD_UNIT_PATH=/etc/box:/usr/local/lib/systemd/system:/run/systemd/transient \
    /lib/systemd/systemd --unit=basic.target --log-target=journal --show-status=0'
