#!/bin/sh
# Runs a command on a system that also has the C libraries of other targets, and that starts their programs.
#
# In: a folder like /usr, with those libraries and with the files of a Python; an `ldd` of musl, or nothing; a folder to
# mount on; an emulator of arm64, or nothing; the command. The caller has made namespaces for users and mounts, so the
# mounts and the emulator's registration end with the command, and nothing else sees them. A program of musl asks for
# /lib/ld-musl-x86_64.so.1, for example, and one of arm64 for /lib/ld-linux-aarch64.so.1. Debian's Python has its pip
# in /usr/share. npm reads in /usr/bin/ldd which C library a system has.
set -eu
usr=$1 ldd=$2 registry=$3 emulator=$4
shift 4
for part in lib share; do mount -t overlay -o "lowerdir=$usr/$part:/usr/$part" overlay "/usr/$part"; done
if [ -n "$ldd" ]; then mount --bind "$ldd" /usr/bin/ldd; fi
if [ -n "$emulator" ]; then
  mount -t binfmt_misc binfmt_misc "$registry"
  # The first bytes of an ELF file for arm64. `F` opens the emulator now, so it is there in any root directory.
  printf '%s' ":arm64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:$emulator:F" >"$registry/register"
fi
exec "$@"
