/* The part of DPDK that the router uses, as functions that another language can call: receiving and sending are inline functions of
 * its headers, and so are the queues between threads. The declarations are repeated in port.rs and ring.rs, which are the only callers.
 * Errors are negative errno values. */
#define _GNU_SOURCE
#include <rte_config.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#define BURST 64
/* Flags of a buffer that say where its memory is; others are of the packet that was in it. */
#define MEMORY_FLAGS (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)

/* A packet and where its bytes are; see struct Packet in port.rs. */
struct fibula_packet {
	struct rte_mbuf *buffer;
	uint8_t *data;
	uint32_t len;   /* bytes from `data` on that are the packet's */
	uint32_t front; /* bytes before `data` that are free */
	uint32_t room;  /* bytes from `data` to the end of the buffer */
	int32_t tag;    /* VLAN tag that the device has taken out, or -1 */
	uint32_t whole; /* whether all of the packet is here */
};

struct fibula_port_options {
	uint16_t receive; /* queues */
	uint16_t send;
	uint16_t frames;  /* of each queue */
	uint16_t mtu;
	uint32_t promiscuous;
	uint32_t set_mac; /* whether `mac` is wanted; else it is what the port has */
	uint8_t mac[6];
};

int fibula_dpdk_start(int count, char **arguments);
int fibula_dpdk_thread(int begins);
struct rte_mempool *fibula_dpdk_pool(const char *name, unsigned buffers, uint16_t bytes, int *error);
int fibula_port_find(const char *name, uint16_t *port);
int fibula_port_open(uint16_t port, struct rte_mempool *pool, struct fibula_port_options *options);
void fibula_port_close(uint16_t port);
int fibula_port_is_up(uint16_t port);
uint64_t fibula_port_lost(uint16_t port);
unsigned fibula_port_receive(uint16_t port, uint16_t queue, struct fibula_packet *packets, unsigned most);
unsigned fibula_port_send(uint16_t port, uint16_t queue, const struct fibula_packet *packets, unsigned count);
int fibula_packet_make(struct rte_mempool *pool, struct fibula_packet *packet);
void fibula_packet_free(struct rte_mbuf *buffer);
unsigned fibula_dpdk_pool_used(const struct rte_mempool *pool);
struct rte_ring *fibula_ring_make(const char *name, unsigned capacity, int *error);
void fibula_ring_free(struct rte_ring *ring);
unsigned fibula_ring_room(const struct rte_ring *ring);
unsigned fibula_ring_count(const struct rte_ring *ring);
unsigned fibula_ring_send(struct rte_ring *ring, const struct fibula_packet *packets, unsigned count);
unsigned fibula_ring_receive(struct rte_ring *ring, struct fibula_packet *packets, unsigned most);

/* Returns the buffer of a packet, with where its bytes are. */
static struct rte_mbuf *placed(const struct fibula_packet *packet)
{
	struct rte_mbuf *buffer = packet->buffer;

	buffer->data_off = packet->data - (uint8_t *)buffer->buf_addr;
	buffer->data_len = packet->len;
	return buffer;
}

int fibula_dpdk_start(int count, char **arguments)
{
	cpu_set_t before;
	int known = pthread_getaffinity_np(pthread_self(), sizeof before, &before) == 0;
	int started = rte_eal_init(count, arguments);

	/* DPDK binds the calling thread to one processor; threads that are made later would inherit that. */
	if (known)
		pthread_setaffinity_np(pthread_self(), sizeof before, &before);
	return started < 0 ? -(rte_errno > 0 ? rte_errno : EINVAL) : 0;
}

/* Tells DPDK of the calling thread, which then has a cache of free buffers of its own. */
int fibula_dpdk_thread(int begins)
{
	if (!begins) {
		rte_thread_unregister();
		return 0;
	}
	return rte_thread_register() < 0 ? -rte_errno : 0;
}

struct rte_mempool *fibula_dpdk_pool(const char *name, unsigned buffers, uint16_t bytes, int *error)
{
	struct rte_mempool *pool = rte_pktmbuf_pool_create(name, buffers, 128, 0, RTE_PKTMBUF_HEADROOM + bytes, SOCKET_ID_ANY);

	*error = pool == NULL ? -rte_errno : 0;
	return pool;
}

/* Buffers that are not in the pool, nor in the cache of a thread. */
unsigned fibula_dpdk_pool_used(const struct rte_mempool *pool)
{
	return rte_mempool_in_use_count(pool);
}

int fibula_port_find(const char *name, uint16_t *port)
{
	return rte_eth_dev_get_port_by_name(name, port);
}

static int queues(uint16_t port, struct rte_mempool *pool, const struct fibula_port_options *options)
{
	uint16_t received = options->frames, sent = options->frames, queue;
	int done = rte_eth_dev_adjust_nb_rx_tx_desc(port, &received, &sent);

	if (done < 0)
		return done;
	for (queue = 0; queue < options->receive; queue++) {
		done = rte_eth_rx_queue_setup(port, queue, received, rte_eth_dev_socket_id(port), NULL, pool);
		if (done < 0)
			return done;
	}
	for (queue = 0; queue < options->send; queue++) {
		done = rte_eth_tx_queue_setup(port, queue, sent, rte_eth_dev_socket_id(port), NULL);
		if (done < 0)
			return done;
	}
	return 0;
}

static int addresses(uint16_t port, struct fibula_port_options *options)
{
	struct rte_ether_addr mac;
	int done;

	memcpy(mac.addr_bytes, options->mac, sizeof options->mac);
	/* A port that keeps its own address must take frames to the other. */
	if (options->set_mac && rte_eth_dev_default_mac_addr_set(port, &mac) < 0)
		options->promiscuous = 1;
	if (!options->set_mac) {
		done = rte_eth_macaddr_get(port, &mac);
		if (done < 0)
			return done;
		memcpy(options->mac, mac.addr_bytes, sizeof options->mac);
	}
	/* Groups are those of neighbour discovery. Virtual devices that cannot choose take all frames. */
	rte_eth_allmulticast_enable(port);
	if (options->promiscuous)
		rte_eth_promiscuous_enable(port);
	return 0;
}

int fibula_port_open(uint16_t port, struct rte_mempool *pool, struct fibula_port_options *options)
{
	struct rte_eth_dev_info info;
	struct rte_eth_conf conf;
	int done = rte_eth_dev_info_get(port, &info);

	if (done < 0)
		return done;
	if (options->receive > info.max_rx_queues || options->send > info.max_tx_queues)
		return -ERANGE;
	memset(&conf, 0, sizeof conf);
	if (options->mtu > RTE_ETHER_MTU)
		conf.rxmode.mtu = options->mtu;
	if (options->receive > 1) {
		conf.rx_adv_conf.rss_conf.rss_hf =
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
		if (conf.rx_adv_conf.rss_conf.rss_hf != 0)
			conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	}
	done = rte_eth_dev_configure(port, options->receive, options->send, &conf);
	if (done == 0)
		done = queues(port, pool, options);
	if (done == 0)
		done = addresses(port, options);
	if (done == 0)
		done = rte_eth_dev_start(port);
	return done < 0 ? done : 0;
}

void fibula_port_close(uint16_t port)
{
	rte_eth_dev_stop(port);
	rte_eth_dev_close(port);
}

int fibula_port_is_up(uint16_t port)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

uint64_t fibula_port_lost(uint16_t port)
{
	struct rte_eth_stats stats;

	return rte_eth_stats_get(port, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}

/* Says where the bytes of a buffer are, and fetches the first of them. */
static void describe(struct rte_mbuf *buffer, struct fibula_packet *packet)
{
	packet->buffer = buffer;
	packet->data = rte_pktmbuf_mtod(buffer, uint8_t *);
	packet->len = buffer->data_len;
	packet->front = buffer->data_off;
	packet->room = buffer->buf_len - buffer->data_off;
	packet->tag = buffer->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED ? buffer->vlan_tci : -1;
	packet->whole = buffer->nb_segs == 1;
	rte_prefetch0(packet->data);
}

unsigned fibula_port_receive(uint16_t port, uint16_t queue, struct fibula_packet *packets, unsigned most)
{
	struct rte_mbuf *buffers[BURST];
	unsigned count = rte_eth_rx_burst(port, queue, buffers, most < BURST ? most : BURST), number;

	for (number = 0; number < count; number++)
		describe(buffers[number], &packets[number]);
	return count;
}

unsigned fibula_port_send(uint16_t port, uint16_t queue, const struct fibula_packet *packets, unsigned count)
{
	struct rte_mbuf *buffers[BURST];
	unsigned number;

	if (count > BURST)
		count = BURST;
	for (number = 0; number < count; number++) {
		struct rte_mbuf *buffer = placed(&packets[number]);

		buffer->pkt_len = packets[number].len;
		buffer->ol_flags &= MEMORY_FLAGS;
		buffer->tx_offload = 0;
		buffers[number] = buffer;
	}
	return rte_eth_tx_burst(port, queue, buffers, count);
}

/* A ring with one sender and one receiver. */
struct rte_ring *fibula_ring_make(const char *name, unsigned capacity, int *error)
{
	struct rte_ring *ring = rte_ring_create(name, capacity, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ | RING_F_EXACT_SZ);

	*error = ring == NULL ? -rte_errno : 0;
	return ring;
}

void fibula_ring_free(struct rte_ring *ring)
{
	rte_ring_free(ring);
}

unsigned fibula_ring_room(const struct rte_ring *ring)
{
	return rte_ring_free_count(ring);
}

unsigned fibula_ring_count(const struct rte_ring *ring)
{
	return rte_ring_count(ring);
}

/* A buffer passes with where its bytes are: all else of it stays as the port has left it. */
unsigned fibula_ring_send(struct rte_ring *ring, const struct fibula_packet *packets, unsigned count)
{
	void *buffers[BURST];
	unsigned number;

	if (count > BURST)
		count = BURST;
	for (number = 0; number < count; number++) {
		buffers[number] = placed(&packets[number]);
	}
	return rte_ring_sp_enqueue_burst(ring, buffers, count, NULL);
}

unsigned fibula_ring_receive(struct rte_ring *ring, struct fibula_packet *packets, unsigned most)
{
	void *buffers[BURST];
	unsigned count = rte_ring_sc_dequeue_burst(ring, buffers, most < BURST ? most : BURST, NULL), number;

	/* The last thread wrote there: fetch all before the first is read. */
	for (number = 0; number < count; number++)
		rte_prefetch0(buffers[number]);
	for (number = 0; number < count; number++)
		describe(buffers[number], &packets[number]);
	return count;
}

int fibula_packet_make(struct rte_mempool *pool, struct fibula_packet *packet)
{
	struct rte_mbuf *buffer = rte_pktmbuf_alloc(pool);

	if (buffer == NULL)
		return -ENOMEM;
	packet->buffer = buffer;
	packet->data = rte_pktmbuf_mtod(buffer, uint8_t *);
	packet->len = 0;
	packet->front = buffer->data_off;
	packet->room = buffer->buf_len - buffer->data_off;
	packet->tag = -1;
	packet->whole = 1;
	return 0;
}

void fibula_packet_free(struct rte_mbuf *buffer)
{
	rte_pktmbuf_free(buffer);
}
