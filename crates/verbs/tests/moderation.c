// Events of a completion channel, as ibv_modify_cq holds them back: two queue pairs of this process, of which one sends to the other.
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define REQUIRE(what) do { if (!(what)) { perror(#what); exit(1); } } while (0)

static struct ibv_qp *qp[2];
static struct ibv_cq *sent, *received;
static struct ibv_comp_channel *channel;

static void connect_to(struct ibv_qp *self, uint32_t peer, const union ibv_gid *gid) {
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    REQUIRE(!ibv_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = peer,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 12,
        .ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = *gid, .hop_limit = 64}},
    };
    REQUIRE(!ibv_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                            | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    attr = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
    REQUIRE(!ibv_modify_qp(self, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                                            | IBV_QP_MAX_QP_RD_ATOMIC));
}

// Sends so many messages without octets, and waits until each has come and its completion been taken.
static void come(int count) {
    for (int n = 0; n < count; n++) {
        struct ibv_recv_wr receive = {0}, *bad_receive;
        struct ibv_send_wr send = {.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED}, *bad_send;
        struct ibv_wc wc;
        REQUIRE(!ibv_post_recv(qp[1], &receive, &bad_receive));
        REQUIRE(!ibv_post_send(qp[0], &send, &bad_send));
        while (ibv_poll_cq(received, 1, &wc) == 0) {}
        REQUIRE(wc.status == IBV_WC_SUCCESS);
        while (ibv_poll_cq(sent, 1, &wc) == 0) {}
        REQUIRE(wc.status == IBV_WC_SUCCESS);
    }
}

static int is_told(int milliseconds) {
    struct pollfd fd = {.fd = channel->fd, .events = POLLIN};
    struct ibv_cq *of;
    void *context;
    if (poll(&fd, 1, milliseconds) == 0) {
        return 0;
    }
    REQUIRE(!ibv_get_cq_event(channel, &of, &context) && of == received);
    ibv_ack_cq_events(of, 1);
    return 1;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void) {
    struct ibv_device **devices = ibv_get_device_list(NULL);
    REQUIRE(devices && devices[0]);
    struct ibv_context *context = ibv_open_device(devices[0]);
    REQUIRE(context);
    struct ibv_device_attr_ex device;
    REQUIRE(!ibv_query_device_ex(context, NULL, &device));
    REQUIRE(device.cq_mod_caps.max_cq_count >= 4 && device.cq_mod_caps.max_cq_period >= 60000);
    union ibv_gid gid;
    REQUIRE(!ibv_query_gid(context, 1, 0, &gid));
    struct ibv_pd *pd = ibv_alloc_pd(context);
    channel = ibv_create_comp_channel(context);
    sent = ibv_create_cq(context, 64, NULL, NULL, 0);
    received = ibv_create_cq(context, 64, NULL, channel, 0);
    REQUIRE(pd && channel && sent && received);
    for (int n = 0; n < 2; n++) {
        struct ibv_qp_init_attr init = {
            .send_cq = sent,
            .recv_cq = received,
            .qp_type = IBV_QPT_RC,
            .cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1}};
        REQUIRE(qp[n] = ibv_create_qp(pd, &init));
    }
    connect_to(qp[0], qp[1]->qp_num, &gid);
    connect_to(qp[1], qp[0]->qp_num, &gid);

    struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_RESERVED};
    REQUIRE(ibv_modify_cq(received, &attr));
    // By the count: the period is as long as it can be, 65 ms.
    attr = (struct ibv_modify_cq_attr){.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {4, 65535}};
    REQUIRE(!ibv_modify_cq(received, &attr));

    REQUIRE(!ibv_req_notify_cq(received, 0));
    come(4);
    REQUIRE(is_told(10000));
    printf("count\n");
    // By the period.
    attr.moderate.cq_count = 1000;
    attr.moderate.cq_period = 60000;
    REQUIRE(!ibv_modify_cq(received, &attr));
    REQUIRE(!ibv_req_notify_cq(received, 0));
    double begin = seconds();
    come(3);
    REQUIRE(is_told(10000));
    printf("period %.6f\n", seconds() - begin);
    REQUIRE(!is_told(100));
    // As at first.
    attr.moderate.cq_count = 0;
    REQUIRE(!ibv_modify_cq(received, &attr));
    REQUIRE(!ibv_req_notify_cq(received, 0));
    come(1);
    REQUIRE(is_told(10000));
    printf("done\n");
    return 0;
}
