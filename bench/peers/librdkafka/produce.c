// A peer for the produce benchmark: COUNT records of SIZE bytes without a key, idempotent, acks all.
//   produce BOOTSTRAP TOPIC COUNT SIZE CODEC        prints one JSON line
// The records are those of bench/subjects/produce.ts.
#include <librdkafka/rdkafka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long delivered = 0, failed = 0;

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque) {
  (void)rk;
  (void)opaque;
  if (m->err) failed++;
  else delivered++;
}

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

#define DISTINCT 1000

int main(int argc, char **argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: see the top of produce.c\n");
    return 2;
  }
  long count = atol(argv[3]);
  size_t size = (size_t)atol(argv[4]);
  rd_kafka_conf_t *conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", argv[1]);
  set(conf, "enable.idempotence", "true");
  set(conf, "linger.ms", "5");
  set(conf, "batch.size", "1000000");
  set(conf, "batch.num.messages", "100000");
  set(conf, "queue.buffering.max.messages", "500000");
  set(conf, "queue.buffering.max.kbytes", "1048576");
  set(conf, "compression.type", argv[5]);
  rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
  char *values = malloc(DISTINCT * size);
  unsigned state = 1;
  for (size_t i = 0; i < DISTINCT * size; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (char)('a' + (state >> 24) % 26);
  }
  char error[256];
  double began = now();
  rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, error, sizeof error);
  if (rk == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, argv[2], NULL);
  for (long i = 0; i < count;) {
    char *value = values + (size_t)(i % DISTINCT) * size;
    if (rd_kafka_produce(topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, value, size, NULL, 0, NULL) == 0) {
      i++;
      if (i % 1000 == 0) rd_kafka_poll(rk, 0);
    } else if (rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL) rd_kafka_poll(rk, 10);
    else {
      fprintf(stderr, "%s\n", rd_kafka_err2str(rd_kafka_last_error()));
      return 1;
    }
  }
  while (rd_kafka_outq_len(rk) > 0) rd_kafka_poll(rk, 10);
  double seconds = now() - began;
  if (failed > 0 || delivered != count) {
    fprintf(stderr, "%ld of %ld delivered, %ld failed\n", delivered, count, failed);
    return 1;
  }
  printf("{\"records\":%ld,\"seconds\":%.4f}\n", delivered, seconds);
  rd_kafka_topic_destroy(topic);
  rd_kafka_destroy(rk);
  return 0;
}
