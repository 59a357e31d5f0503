// A peer for the group benchmark: a member of a fresh group, alone in it.
//   group BOOTSTRAP TOPIC COUNT GROUP        prints one JSON line
// With BENCH_HASH=1 the sum of the CRC-32 of all values as well.
#include <librdkafka/rdkafka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
  char error[256];
  if (rd_kafka_conf_set(conf, name, value, error, sizeof error) != RD_KAFKA_CONF_OK) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t crc_table[256];

static uint32_t crc32_of(const uint8_t *bytes, size_t n) {
  uint32_t c = 0xffffffffu;
  for (size_t i = 0; i < n; i++) c = (c >> 8) ^ crc_table[(c ^ bytes[i]) & 0xff];
  return ~c;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: see the top of group.c\n");
    return 2;
  }
  long want = atol(argv[3]), records = 0;
  size_t bytes = 0;
  const char *told = getenv("BENCH_HASH");
  int hashed = told != NULL && told[0] == '1';
  uint64_t hash = 0;
  for (uint32_t b = 0; b < 256; b++) {
    uint32_t c = b;
    for (int bit = 0; bit < 8; bit++) c = (c & 1) ? (c >> 1) ^ 0xedb88320u : c >> 1;
    crc_table[b] = c;
  }
  double began = now(), first = 0;
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", argv[1]);
  set(conf, "group.id", argv[4]);
  set(conf, "auto.offset.reset", "earliest");
  char error[256];
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, error, sizeof error);
  if (rk == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  rd_kafka_poll_set_consumer(rk);
  rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
  rd_kafka_topic_partition_list_add(topics, argv[2], RD_KAFKA_PARTITION_UA);
  rd_kafka_subscribe(rk, topics);
  while (records < want) {
    rd_kafka_message_t *m = rd_kafka_consumer_poll(rk, 1000);
    if (m == NULL) continue;
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      if (records == 0) first = now() - began;
      records++;
      bytes += m->len;
      if (hashed) hash += crc32_of(m->payload, m->len);
    }
    rd_kafka_message_destroy(m);
  }
  printf("{\"records\":%ld,\"bytes\":%zu,\"first\":%.4f,\"seconds\":%.4f,\"hash\":\"%016lx\"}\n", records, bytes, first,
         now() - began, (unsigned long)hash);
  fflush(stdout);
  _exit(0);
}
