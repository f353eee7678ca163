/* Messages of one size from one reliable-datagram endpoint of libfabric to another, many of them outstanding: what fabtests'
 * fi_rdm_bw measures, which Debian does not package.
 *
 *     cc -O2 -o fabric_bw fabric_bw.c -lfabric
 *     fabric_bw PROVIDER OWN_ADDRESS PEER_ADDRESS OCTETS MESSAGES OUTSTANDING receive    prints nothing
 *     fabric_bw PROVIDER OWN_ADDRESS PEER_ADDRESS OCTETS MESSAGES OUTSTANDING send       prints Gb/s of payload
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 64 };

static const char *const PORT = "47592";

static struct fid_ep *endpoint;
static struct fid_cq *queue;

static void check(const char *what, ssize_t result) {
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", what, fi_strerror((int)-result));
        exit(1);
    }
}

/* How many operations have ended. */
static size_t poll_queue(void) {
    struct fi_cq_entry done[BATCH];
    ssize_t count = fi_cq_read(queue, done, BATCH);
    if (count == -FI_EAGAIN)
        return 0;
    if (count == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(queue, &error, 0);
        check("an operation", -error.err);
    }
    check("fi_cq_read", count);
    return (size_t)count;
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct fi_info *info_of(const char *provider, const char *address, uint64_t flags) {
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG;
    hints->fabric_attr->prov_name = strdup(provider);
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 14), address, PORT, flags, hints, &info));
    fi_freeinfo(hints);
    return info;
}

/* Posts a message to be received or sent; 0 where there is no room now. */
static int post(int sends, char *octets, size_t size, fi_addr_t peer) {
    ssize_t posted = sends ? fi_send(endpoint, octets, size, NULL, peer, NULL)
                           : fi_recv(endpoint, octets, size, NULL, FI_ADDR_UNSPEC, NULL);
    if (posted == -FI_EAGAIN)
        return 0;
    check("a post", posted);
    return 1;
}

int main(int count, char **words) {
    if (count != 8)
        return 2;
    const size_t size = strtoul(words[4], NULL, 10), messages = strtoul(words[5], NULL, 10);
    const size_t window = strtoul(words[6], NULL, 10);
    const int sends = strcmp(words[7], "send") == 0;
    struct fi_info *own = info_of(words[1], words[2], FI_SOURCE), *there = info_of(words[1], words[3], 0);
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *addresses;
    struct fi_av_attr av = {.type = FI_AV_MAP};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT, .size = 4 * window};
    check("fi_fabric", fi_fabric(own->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, own, &domain, NULL));
    check("fi_av_open", fi_av_open(domain, &av, &addresses, NULL));
    check("fi_cq_open", fi_cq_open(domain, &cq, &queue, NULL));
    check("fi_endpoint", fi_endpoint(domain, own, &endpoint, NULL));
    check("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
    check("fi_ep_bind", fi_ep_bind(endpoint, &queue->fid, FI_SEND | FI_RECV));
    check("fi_enable", fi_enable(endpoint));
    fi_addr_t peer;
    if (fi_av_insert(addresses, there->dest_addr, 1, &peer, 0, NULL) != 1)
        check("fi_av_insert", -FI_EINVAL);

    /* One more than are outstanding: a receiver cannot tell the end of its word from that of a message. */
    char *octets = calloc(window + 1, size), word[4] = {0};
    size_t posted = 0, done = 0;
    if (sends) {
        /* The receiver's first word says that it waits. */
        while (!post(0, word, sizeof word, peer)) {}
        while (poll_queue() == 0) {}
        while (!post(0, word, sizeof word, peer)) {}
    } else {
        while (posted < window)
            posted += (size_t)post(0, octets + posted * size, size, peer);
        while (!post(1, word, sizeof word, peer))
            done += poll_queue();
    }
    const double begin = seconds();
    /* All messages, and the receiver's word: its last at the sender, its first at itself. */
    while (done < messages + 1) {
        while (posted < (sends ? messages : messages + window) && posted < done + window &&
               post(sends, octets + posted % (window + 1) * size, size, peer))
            posted++;
        done += poll_queue();
    }
    if (sends) {
        printf("%.3f\n", (double)(messages * size) * 8 / (seconds() - begin) / 1e9);
        return 0;
    }
    while (!post(1, word, sizeof word, peer))
        poll_queue();
    /* The provider goes on only as it is asked: until the sender has the word, and a little longer. */
    for (double until = seconds() + 1; seconds() < until;)
        poll_queue();
    return 0;
}
