#!/usr/bin/env bash
# Counts the standard run on processors that this machine does not have: those that QEMU emulates. Each must count what
# baselines/counted says.
#
#   tools/counted_processors.sh Haswell EPYC            processors, as 'qemu-system-x86_64 -cpu help' names them
#   tools/counted_processors.sh Haswell -- ARGUMENT ...   with these arguments of pytest
#
# A guest has this machine's files, which it cannot write to, and a Debian kernel, which is downloaded once. It needs
# Debian's qemu-system-x86 and busybox-static. Run 'make counted' first: a guest would compile for hours.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
kept=${XDG_CACHE_HOME:-$HOME/.cache}/perfsuite/guest
modules=(virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci netfs fscache 9pnet 9pnet_virtio 9p overlay)
limit_s=7200

say() { printf 'counted-processors: %s\n' "$*" >&2; }

# The kernel, and the program that it starts: it lays a file system in memory over this machine's files.
make_guest() {
  local part=$kept.part package module
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends/ {print $2; exit}')
  rm -rf "$part" && mkdir -p "$part"/tree/{bin,lib,proc,files,memory,new}
  (cd "$part" && apt-get download -q "$package" >/dev/null 2>&1 && dpkg-deb -x ./*.deb package)
  mv "$part"/package/boot/vmlinuz-* "$part/kernel"
  cp /bin/busybox "$part/tree/bin/busybox"
  for module in "${modules[@]}"; do
    find "$part/package/lib/modules" -name "$module.ko" -exec cp {} "$part/tree/lib/" \;
  done
  cat >"$part/tree/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
for module in ${modules[*]}; do insmod /lib/\$module.ko || exec poweroff -f; done
mount -t tmpfs none /memory
mkdir /memory/upper /memory/work
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro files /files
mount -t overlay -o lowerdir=/files,upperdir=/memory/upper,workdir=/memory/work none /new
mount -t proc none /new/proc
mount -t sysfs none /new/sys
mount -t devtmpfs none /new/dev
mkdir -p /new/dev/shm
mount -t tmpfs none /new/tmp
mount -t proc none /proc
sed -n 's/.* -- //p' /proc/cmdline >/new/tmp/command
chroot /new /bin/sh /tmp/command
poweroff -f
INIT
  chmod +x "$part/tree/init"
  (cd "$part/tree" && find . | busybox cpio -o -H newc 2>/dev/null) >"$part/initrd"
  rm -rf "$part"/{tree,package,*.deb} "$kept"
  mv "$part" "$kept"
}

processors=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do processors+=("$1") && shift; done
[ $# = 0 ] || shift
[ ${#processors[@]} -gt 0 ] || { say "name a processor, such as Haswell" && exit 2; }
for name in qemu-system-x86_64 busybox; do
  command -v "$name" >/dev/null || { say "there is no $name; install Debian's qemu-system-x86 and busybox-static" && exit 3; }
done
[ -e "$kept/initrd" ] || make_guest
command="export HOME=$HOME PATH=$PATH; cd $root; grep -m1 name /proc/cpuinfo; .venv/bin/python -m pytest -q -p no:cacheprovider --device=counted $*; echo ends with \$?"
for processor in "${processors[@]}"; do
  say "$processor"
  timeout "$limit_s" qemu-system-x86_64 -accel tcg -cpu "$processor" -m 4096 -display none -monitor none -serial stdio -nic none -no-reboot \
    -kernel "$kept/kernel" -initrd "$kept/initrd" -append "console=ttyS0 quiet no_timer_check panic=-1 -- $command" \
    -virtfs local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap 2>&1 |
    grep -v 'warning: TCG' | tr -d '\r'
done
