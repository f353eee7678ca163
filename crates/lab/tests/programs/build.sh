#!/bin/sh
# Builds the bad programs' images anew. Those in the repository are gcc 12.2.0's (Debian's gcc-riscv64-unknown-elf).
set -eu
cd "$(dirname "$0")"
for source in *.c; do
    cargo run --quiet --locked -p roci-cli -- program build "$source" >/dev/null
done
# An image of 64 bits, which no program is.
printf 'int recv(void) { return 0; }\n' |
    riscv64-unknown-elf-gcc -march=rv64i -mabi=lp64 -ffreestanding -nostdlib -O2 -Wl,--build-id=none -Wl,-e,recv \
        -o sixty_four_bits.elf -x c -
