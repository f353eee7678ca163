#!/bin/sh
# Builds the images of the programs in this directory and of the tests anew, or of those that are named, each beside its
# text. Those in the repository are gcc 12.2.0's (Debian's gcc-riscv64-unknown-elf 12.2.0-14). `MARCH=rv32i` builds for
# cores without multiplication.
set -eu
cd "$(dirname "$0")"
cc=riscv64-unknown-elf-gcc
march=${MARCH:-rv32im}
libgcc=$($cc "-march=$march" -mabi=ilp32 -print-libgcc-file-name)
[ $# -gt 0 ] || set -- *.c ../crates/control/tests/images/*.c
for source; do
    printf '#include "program.h"\n#include "%s"\n#include "program_end.h"\n' "$source" |
        $cc "-march=${march}_zicsr" -mabi=ilp32 -ffreestanding -nostdlib -O2 -g -Wall -Wextra -Werror \
            -fno-jump-tables -mno-relax -fno-strict-aliasing -fno-var-tracking --param=min-pagesize=0 \
            -fdebug-prefix-map="$PWD"=. -Iinclude -I. -Wl,-melf32lriscv -Wl,--build-id=none \
            -Wl,-z,max-page-size=16 -T link.ld -o "${source%.c}.elf" -x c - -x none "$libgcc"
done
