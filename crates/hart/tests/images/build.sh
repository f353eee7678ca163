#!/bin/sh
# Builds the images anew. Those in the repository are gcc 12.2.0's (Debian's gcc-riscv64-unknown-elf 12.2.0-14).
set -eu
cd "$(dirname "$0")"
cc=riscv64-unknown-elf-gcc
libgcc=$($cc -march=rv32i -mabi=ilp32 -print-libgcc-file-name)
for image in events,straight loops,bitmap; do
    name=${image%,*}
    $cc -march=rv32i_zicsr -mabi=ilp32 -ffreestanding -nostdlib -O2 -g1 -mno-relax \
        -fdebug-prefix-map="$PWD"=. -Wl,-melf32lriscv -Wl,--build-id=none -Wl,-e,"${image#*,}" -T link.ld \
        -o "$name.elf" "$name.c" "$libgcc"
done
