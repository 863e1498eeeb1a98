#!/usr/bin/env bash
# Makes a Debian for arm64 and prints its folder; made once, nothing is done again. In the folder:
#
#   root      its files: sshd, OpenCL's loader with PoCL, headers and libraries to compile against; no Python
#   opencl    of its headers, OpenCL's alone, for compilers that have a C library of their own
#   kernel    Debian's kernel for arm64, for qemu-system-aarch64
#   initrd    what that kernel starts: the modules that reach `root` on the desk, and the program that goes on there
#
#   tools/arm_root.sh           makes it where it is missing, and lets this machine run its programs (qemu's binfmt)
#   tools/arm_root.sh --kept    makes nothing; ends with 3, and says why, where there is none
#
# Making it needs root and Debian's debootstrap, but no emulation: packages are unpacked and not configured. It is kept
# in the cache by the hash of its recipe, which is this file; nothing writes to it.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${XDG_CACHE_HOME:-${HOME:-$root/build}/.cache}
release=trixie
packages=openssh-server,iproute2,ocl-icd-libopencl1,pocl-opencl-icd,clinfo,busybox-static,linux-image-arm64
packages+=,libc6-dev,libbpf-dev,libelf-dev,zlib1g-dev,opencl-headers
modules=(failover net_failover virtio_net netfs 9pnet 9pnet_virtio 9p overlay)
folder=$cache/perfsuite/arm-root/$(sha256sum <"${BASH_SOURCE[0]}" | cut -c 1-16)

say() { printf 'arm-root: %s\n' "$*" >&2; }

unavailable() {
  say "$1"
  exit 3
}

# What the packages' scripts would have done, as far as anything here asks for it.
furnish() { # ROOT
  local name
  for name in passwd group; do cp "$1/usr/share/base-passwd/$name.master" "$1/etc/$name"; done
  echo 'sshd:*:100:65534::/run/sshd:/usr/sbin/nologin' >>"$1/etc/passwd"
  for name in awk:mawk which:which.debianutils; do ln -sf "${name#*:}" "$1/usr/bin/${name%:*}"; done
  rm -rf "$1"/usr/share/{doc,man,locale,info} "$1"/var/lib/dpkg
}

# The program that the kernel starts: it brings in the modules, and lays a file system in memory over the desk's files.
# What is to run there lies in a second folder of the desk.
write_initrd() { # ROOT PLACE
  local module tree=$2.tree
  mkdir -p "$tree"/{bin,lib,proc,desk,kept,memory,new}
  cp "$1/bin/busybox" "$tree/bin/busybox"
  for module in "${modules[@]}"; do
    find "$1/usr/lib/modules" -name "$module.ko.xz" -exec xz -dc {} + >"$tree/lib/$module.ko"
    [ -s "$tree/lib/$module.ko" ] || unavailable "the kernel has no module $module"
  done
  cat >"$tree/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
for module in ${modules[*]}; do insmod /lib/\$module.ko || exec poweroff -f; done
set -e
mount -t tmpfs none /memory
mkdir /memory/upper /memory/work
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose,ro kept /kept
mount -t overlay -o lowerdir=/kept,upperdir=/memory/upper,workdir=/memory/work none /new
mkdir -p /new/desk
mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none desk /new/desk
mount -t proc none /new/proc
mount -t sysfs none /new/sys
mount -t devtmpfs none /new/dev
mkdir -p /new/dev/pts /new/dev/shm
mount -t devpts none /new/dev/pts
mount -t tmpfs none /new/run
mount -t tmpfs none /new/tmp
exec switch_root /new /bin/sh /desk/start
INIT
  chmod +x "$tree/init"
  (cd "$tree" && find . | busybox cpio -o -H newc 2>/dev/null) >"$2"
  rm -rf "$tree"
}

make_root() {
  local log=$folder.log part=$folder.part package
  command -v debootstrap >/dev/null || unavailable "there is no debootstrap; 'make long-needs' installs it"
  say "making a Debian for arm64, once: about a minute"
  mkdir -p "${folder%/*}"
  rm -rf --one-file-system "${folder%/*}"/*
  mkdir -p "$part/root/usr" "$part/packages"
  debootstrap --download-only --arch=arm64 --variant=minbase --include="$packages" "$release" "$part/packages" \
    "$("$root/tools/debian_mirror.sh")" >"$log" 2>&1 || {
    tail -n 5 "$log" >&2
    unavailable "debootstrap failed; the whole log is $log"
  }
  for name in bin sbin lib; do mkdir "$part/root/usr/$name" && ln -s "usr/$name" "$part/root/$name"; done
  for package in "$part"/packages/var/cache/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$part/root"
  done
  furnish "$part/root"
  mv "$part/root/boot"/vmlinuz-* "$part/kernel"
  write_initrd "$part/root" "$part/initrd"
  mkdir "$part/opencl"
  ln -s ../root/usr/include/CL "$part/opencl/CL"
  rm -rf "$part"/{packages,root/boot/*,root/usr/lib/modules,root/usr/lib/linux-image-*}
  mv "$part" "$folder"
}

# Debian registers its emulation with the file held open (F), so that it serves roots in which it does not lie.
register() {
  local binfmt=/proc/sys/fs/binfmt_misc
  [ -e $binfmt/register ] || mount -t binfmt_misc none $binfmt 2>/dev/null || return
  [ -e $binfmt/qemu-aarch64 ] || update-binfmts --enable qemu-aarch64 2>/dev/null
}

case "${1:-}" in
  '') ;;
  --kept)
    [ -d "$folder" ] || unavailable "it has not been made; 'make long-needs' makes it, as root"
    echo "$folder"
    exit
    ;;
  *) say "usage: tools/arm_root.sh [--kept]" && exit 2 ;;
esac
[ "$(id -u)" = 0 ] || unavailable "it needs root"
mkdir -p "${folder%/*}"
exec 6>"${folder%/*}.lock"
flock 6
[ -d "$folder" ] || make_root
register || say "this machine does not run programs for arm64 (binfmt_misc)"
echo "$folder"
