/* What `roci program build` puts behind a program: where the cores start, and what the loader wants to know. */
_Static_assert(sizeof(QPContext) <= 128 && sizeof(QPContext) % 4 == 0, "QPContext is at most 32 words");
_Static_assert(sizeof(PktHeader) >= 16 && sizeof(PktHeader) <= 80 && sizeof(PktHeader) % 4 == 0,
               "PktHeader is qpn, opcode, pktLength, ecn and at most 16 words");
_Static_assert(ROCI_FIXED(qpn, 0) && ROCI_FIXED(opcode, 4) && ROCI_FIXED(pktLength, 8) && ROCI_FIXED(ecn, 12),
               "PktHeader begins with `int qpn, opcode, pktLength, ecn`, and words of its own follow");
_Static_assert(_Alignof(QPContext) <= 4, "fields of QPContext are at most 32 bits wide");
_Static_assert(_Alignof(PktHeader) <= 4, "fields of PktHeader are at most 32 bits wide");

int send();
int recv();

/* The sizes stand in the file as symbols whose addresses they are; the linker makes send zero where there is none. */
__attribute__((section(".start"), noreturn, used)) void rx_start(void) {
    __asm__ volatile(".globl context_octets, header_octets\n.set context_octets, %0\n.set header_octets, %1"
                     :
                     : "i"(sizeof(QPContext)), "i"(sizeof(PktHeader) - 16));
    tracePackets(TracedPkts);
    recv();
    __builtin_unreachable();
}
__attribute__((section(".start"), noreturn, used)) void tx_start(void) {
    send();
    __builtin_unreachable();
}
