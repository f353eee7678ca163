#!/bin/sh
# Builds the image anew. The one in the repository is gcc 12.2.0's (Debian's gcc-riscv64-unknown-elf 12.2.0-14).
set -eu
cd "$(dirname "$0")"
riscv64-unknown-elf-gcc -march=rv32im_zicsr -mabi=ilp32 -ffreestanding -nostdlib -O2 -g1 \
    -fdebug-prefix-map="$PWD"=. -Wl,-melf32lriscv -Wl,--build-id=none -T link.ld -o law.elf law.c
