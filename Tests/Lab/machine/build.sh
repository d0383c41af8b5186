#!/bin/bash
# Makes the kernel, the first RAM disk and the Python environment of the machine in the folder $1.
set -euo pipefail
lab=$1
here=$(cd "$(dirname "$0")" && pwd)

# The kernel that Debian 12 installs today, 6.1.192 (package 6.1.0-57), crashes when an ATT socket on which
# nothing was ever received is closed after its link was lost. 6.1.176 does the same job without that.
image=${RELINK_LAB_KERNEL:-linux-image-6.1.0-50-amd64}
version=${image#linux-image-}

die() {
  echo "lab: $*" >&2
  exit 2
}

[ "$(id -u)" = 0 ] || die "building needs root (apt-get)"
apt-get update -q > /dev/null || die "apt-get update failed; is there a network?"
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
  qemu-system-x86 busybox-static kmod cpio gcc libc6-dev libbluetooth-dev bluez bluez-test-tools dbus \
  python3 python3-venv > /dev/null || die "apt-get could not install the lab's packages"

rm -rf "$lab/package" "$lab/kernel" "$lab/disk"
mkdir -p "$lab/package" "$lab/kernel" "$lab/disk"
(cd "$lab/package" && apt-get -o APT::Sandbox::User=root download -q "$image" > /dev/null) || die \
  "the archive has no package $image any more. Set RELINK_LAB_KERNEL to one of these and see" \
  "Tests/Lab/README.md about the faulty ones (-cloud- kernels have no Bluetooth):" \
  "$(apt-cache --names-only search '^linux-image-6\.[0-9.]*-[0-9]*-amd64$' | cut -d' ' -f1 | tr '\n' ' ')"
dpkg -x "$lab/package/$image"_*.deb "$lab/kernel"
rm -rf "$lab/package"
depmod -b "$lab/kernel" "$version"
[ -d "$lab/kernel/lib/modules/$version/kernel/net/bluetooth" ] || die "$image has no Bluetooth"

# jitterentropy_rng must stay out of the list: it refuses to start under emulation, and takes drbg, ecdh and with
# them LE Secure Connections along.
disk=$lab/disk
mkdir -p "$disk"/{bin,sbin,etc,proc,sys,dev,root,mnt/host,mnt/layer} "$disk/lib/modules/$version"
cp "$(command -v busybox)" "$disk/bin/busybox"
ln -s ../bin/busybox "$disk/sbin/modprobe"
cp "$here/modules" "$disk/etc/modules"
install -m 755 "$here/init" "$disk/init"
while read -r module; do
  modprobe -d "$lab/kernel" -S "$version" --show-depends "$module" | awk '/^insmod/ { print $2 }'
done < "$here/modules" | sort -u | while read -r file; do
  install -D -m 644 "$file" "$disk/${file#"$lab/kernel/"}"
done
cp "$lab/kernel/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$disk/lib/modules/$version/"
depmod -b "$disk" "$version"
(cd "$disk" && find . | cpio -o -H newc --quiet | gzip -1) > "$lab/initrd.gz"
cp "$lab/kernel/boot/vmlinuz-$version" "$lab/vmlinuz"
rm -rf "$lab/kernel" "$disk"

[ -x "$lab/venv/bin/python" ] || /usr/bin/python3 -m venv "$lab/venv"
"$lab/venv/bin/pip" -q install --disable-pip-version-check -r "$here/requirements.txt" \
  || die "pip could not install the peripheral's library"
