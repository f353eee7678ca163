// What queue pairs give their peers and how their packets are marked, as a program in C says it; and regions whose pages are fetched on demand.
// The peer's address, of which this process has UDP port 4791 by a plain socket, is the argument.
#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>

#define REQUIRE(what) do { if (!(what)) { perror(#what); exit(1); } } while (0)

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *region;
static char memory[4096];

static struct ibv_qp *made(enum ibv_qp_type type) {
    struct ibv_qp_init_attr init = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = type,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &init);
    REQUIRE(qp);
    return qp;
}

static void connect_to(struct ibv_qp *self, uint32_t peer, union ibv_gid gid, int access, uint8_t traffic_class) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = access};
    REQUIRE(!ibv_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .traffic_class = traffic_class, .hop_limit = 64}},
    };
    REQUIRE(!ibv_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                            | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 0, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    REQUIRE(!ibv_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                                            | IBV_QP_MAX_QP_RD_ATOMIC));
}

// How a WRITE ends of which the queue pair that takes it has these rights, to octet 64 of the region as the peer names it.
static enum ibv_wc_status written(union ibv_gid gid, int access, uint64_t begin, uint32_t rkey) {
    struct ibv_qp *from = made(IBV_QPT_RC), *to = made(IBV_QPT_RC);
    connect_to(from, to->qp_num, gid, 0, 0);
    connect_to(to, from->qp_num, gid, access, 0);
    struct ibv_sge part = {.addr = (uintptr_t)memory, .length = 8, .lkey = region->lkey};
    memory[64] = 0;
    memory[0] = 7;
    struct ibv_send_wr write = {
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .sg_list = &part,
        .num_sge = 1,
        .wr.rdma = {.remote_addr = begin + 64, .rkey = rkey}}, *bad;
    REQUIRE(!ibv_post_send(from, &write, &bad));
    struct ibv_wc wc;
    while (ibv_poll_cq(cq, 1, &wc) == 0) {}
    REQUIRE(!ibv_destroy_qp(from) && !ibv_destroy_qp(to));
    REQUIRE(memory[64] == (wc.status == IBV_WC_SUCCESS ? 7 : 0));
    return wc.status;
}

// The type of service of the next packet, without the mark.
static int service(int peer) {
    char octets[2048], control[64];
    struct iovec into = {octets, sizeof octets};
    struct msghdr message = {.msg_iov = &into, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    REQUIRE(recvmsg(peer, &message, 0) > 0);
    for (struct cmsghdr *it = CMSG_FIRSTHDR(&message); it; it = CMSG_NXTHDR(&message, it)) {
        if (it->cmsg_level == IPPROTO_IP && it->cmsg_type == IP_TOS) {
            return *CMSG_DATA(it) & ~3;
        }
    }
    return -1;
}

int main(int count, char **words) {
    REQUIRE(count == 2);
    struct ibv_device **devices = ibv_get_device_list(NULL);
    REQUIRE(devices && devices[0]);
    REQUIRE(context = ibv_open_device(devices[0]));
    union ibv_gid own, far = {.raw = {[10] = 0xff, [11] = 0xff}};
    REQUIRE(!ibv_query_gid(context, 1, 0, &own));
    REQUIRE(pd = ibv_alloc_pd(context));
    REQUIRE(cq = ibv_create_cq(context, 64, NULL, NULL, 0));

    // Regions of more than four gigabytes, of which no page is touched, and on demand.
    struct ibv_device_attr plain;
    size_t large = (size_t)5 << 30;
    REQUIRE(!ibv_query_device(context, &plain) && plain.max_mr_size >= large);
    void *pages = mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    struct ibv_mr *whole = ibv_reg_mr(pd, pages, large, IBV_ACCESS_LOCAL_WRITE);
    REQUIRE(whole && !ibv_dereg_mr(whole) && !munmap(pages, large));
    struct ibv_device_attr_ex device;
    REQUIRE(!ibv_query_device_ex(context, NULL, &device));
    REQUIRE(device.odp_caps.general_caps == IBV_ODP_SUPPORT);
    REQUIRE(device.odp_caps.per_transport_caps.rc_odp_caps & IBV_ODP_SUPPORT_ATOMIC);
    REQUIRE(!(device.odp_caps.per_transport_caps.uc_odp_caps & IBV_ODP_SUPPORT_READ));
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ON_DEMAND;
    REQUIRE(region = ibv_reg_mr(pd, memory, sizeof memory, access));
    struct ibv_sge part = {.addr = (uintptr_t)memory, .length = sizeof memory, .lkey = region->lkey};
    REQUIRE(!ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &part, 1));
    part.length++;
    REQUIRE(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &part, 1) == EFAULT);

    // Rights.
    uint64_t begin = (uintptr_t)memory;
    REQUIRE(written(own, IBV_ACCESS_REMOTE_WRITE, begin, region->rkey) == IBV_WC_SUCCESS);
    REQUIRE(written(own, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE, begin, region->rkey) == IBV_WC_REM_INV_REQ_ERR);

    // Addresses.
    access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    uint64_t other = 0x10000000 + begin % 4096;
    REQUIRE(!ibv_reg_mr_iova(pd, memory, sizeof memory, other + 1, access) && errno == EINVAL);
    struct ibv_mr *named = ibv_reg_mr_iova(pd, memory, sizeof memory, other, access);
    struct ibv_mr *zero = ibv_reg_mr(pd, memory, sizeof memory, access | IBV_ACCESS_ZERO_BASED);
    REQUIRE(named && zero);
    REQUIRE(written(own, IBV_ACCESS_REMOTE_WRITE, other, named->rkey) == IBV_WC_SUCCESS);
    REQUIRE(written(own, IBV_ACCESS_REMOTE_WRITE, begin, named->rkey) == IBV_WC_REM_ACCESS_ERR);
    REQUIRE(written(own, IBV_ACCESS_REMOTE_WRITE, 0, zero->rkey) == IBV_WC_SUCCESS);
    REQUIRE(!ibv_rereg_mr(named, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE));
    part = (struct ibv_sge){.addr = other, .length = 8, .lkey = named->lkey};
    REQUIRE(!ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &part, 1));
    REQUIRE(written(own, IBV_ACCESS_REMOTE_WRITE, other, named->rkey) == IBV_WC_REM_ACCESS_ERR);
    REQUIRE(!ibv_dereg_mr(named) && !ibv_dereg_mr(zero));

    // Classes.
    int peer = socket(AF_INET, SOCK_DGRAM, 0), on = 1;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(4791)};
    struct timeval wait = {.tv_sec = 20};
    REQUIRE(inet_pton(AF_INET, words[1], &at.sin_addr) == 1 && inet_pton(AF_INET, words[1], far.raw + 12) == 1);
    REQUIRE(!setsockopt(peer, IPPROTO_IP, IP_RECVTOS, &on, sizeof on));
    REQUIRE(!setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait));
    REQUIRE(!bind(peer, (struct sockaddr *)&at, sizeof at));
    struct ibv_send_wr write = {.opcode = IBV_WR_RDMA_WRITE}, *bad;
    for (int class = 0; class <= 104; class += 52) {
        struct ibv_qp *qp = made(IBV_QPT_RC);
        connect_to(qp, 5, far, 0, class);
        REQUIRE(!ibv_post_send(qp, &write, &bad));
        REQUIRE(service(peer) == class);
        struct ibv_qp_attr attr;
        struct ibv_qp_init_attr init;
        REQUIRE(!ibv_query_qp(qp, &attr, IBV_QP_AV, &init) && attr.ah_attr.grh.traffic_class == class);
        REQUIRE(!ibv_destroy_qp(qp));
    }
    struct ibv_qp *datagrams = made(IBV_QPT_UD);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7};
    REQUIRE(!ibv_modify_qp(datagrams, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    attr.qp_state = IBV_QPS_RTR;
    REQUIRE(!ibv_modify_qp(datagrams, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    REQUIRE(!ibv_modify_qp(datagrams, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    for (int class = 32; class <= 64; class += 32) {
        struct ibv_ah_attr to = {.is_global = 1, .port_num = 1, .grh = {.dgid = far, .traffic_class = class}};
        struct ibv_ah *handle = ibv_create_ah(pd, &to);
        REQUIRE(handle);
        struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .wr.ud = {.ah = handle, .remote_qpn = 9, .remote_qkey = 7}};
        REQUIRE(!ibv_post_send(datagrams, &send, &bad));
        REQUIRE(service(peer) == class);
        REQUIRE(!ibv_destroy_ah(handle));
    }
    printf("done\n");
    return 0;
}
