// A peer for the raw consume benchmark, and the loader of benchmark topics.
//
//	franz-go consume BOOTSTRAP TOPIC COUNT PARTITIONS   reads COUNT records from the start, prints one JSON line
//	franz-go produce BOOTSTRAP TOPIC FILE PARTITIONS CODEC [TIMES]   sends each line of FILE, the i-th sent to
//	partition i % PARTITIONS; the whole file TIMES times
//	franz-go group BOOTSTRAP TOPIC COUNT GROUP   a member of a fresh group, alone in it
//	franz-go send BOOTSTRAP TOPIC COUNT SIZE CODEC   idempotent, acks all; the records of bench/subjects/produce.ts
package main

import (
	"bufio"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func main() {
	if len(os.Args) < 6 {
		fmt.Fprintln(os.Stderr, "usage: see the top of main.go")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "consume":
		consume(os.Args[2], os.Args[3], number(os.Args[4]), number(os.Args[5]))
	case "group":
		group(os.Args[2], os.Args[3], number(os.Args[4]), os.Args[5])
	case "send":
		send(os.Args[2], os.Args[3], number(os.Args[4]), number(os.Args[5]), os.Args[6])
	case "produce":
		times := 1
		if len(os.Args) > 7 {
			times = number(os.Args[7])
		}
		produce(os.Args[2], os.Args[3], os.Args[4], number(os.Args[5]), os.Args[6], times)
	}
}

// The hash is order-free over partitions: a sum of the checksums of all values.
func consume(bootstrap, topic string, want, partitions int) {
	starts := map[int32]kgo.Offset{}
	for p := 0; p < partitions; p++ {
		starts[int32(p)] = kgo.NewOffset().AtStart()
	}
	begin := time.Now()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}))
	must(err)
	withHash := os.Getenv("BENCH_HASH") == "1"
	var records, bytes int
	var sum uint64
	for records < want {
		fetches := client.PollFetches(context.Background())
		for _, e := range fetches.Errors() {
			must(e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			records++
			bytes += len(r.Value)
			if withHash {
				sum += uint64(crc32.ChecksumIEEE(r.Value))
			}
		})
	}
	seconds := time.Since(begin).Seconds()
	var use syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	cpu := float64(use.Utime.Sec+use.Stime.Sec) + float64(use.Utime.Usec+use.Stime.Usec)/1e6
	fmt.Printf("{\"records\":%d,\"bytes\":%d,\"seconds\":%.4f,\"cpu\":%.3f,\"rss_mb\":%d,\"hash\":\"%016x\"}\n",
		records, bytes, seconds, cpu, use.Maxrss/1024, sum)
}

func produce(bootstrap, topic, file string, partitions int, codec string, times int) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression(),
		"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "zstd": kgo.ZstdCompression()}
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[codec]), kgo.ProducerLinger(20*time.Millisecond),
		kgo.ProducerBatchMaxBytes(65536), kgo.MaxBufferedRecords(200000),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	must(err)
	keep, producer := "-1", "producer"
	_, err = kadm.NewClient(client).CreateTopic(context.Background(), int32(partitions), 1,
		map[string]*string{"retention.ms": &keep, "compression.type": &producer}, topic)
	must(err)
	start := time.UnixMilli(1767225600000)
	i := 0
	for t := 0; t < times; t++ {
		in, err := os.Open(file)
		must(err)
		lines := bufio.NewScanner(in)
		lines.Buffer(make([]byte, 1<<20), 64<<20)
		for lines.Scan() {
			value := append([]byte(nil), lines.Bytes()...)
			record := &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: value,
				Timestamp: start.Add(time.Duration(7*i) * time.Millisecond)}
			client.Produce(context.Background(), record, func(_ *kgo.Record, err error) { must(err) })
			i++
		}
		must(lines.Err())
		must(in.Close())
	}
	must(client.Flush(context.Background()))
	fmt.Printf("{\"topic\":%q,\"records\":%d}\n", topic, i)
}

func send(bootstrap, topic string, count, size int, codec string) {
	codecs := map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression()}
	const distinct = 1000
	values := make([]byte, distinct*size)
	state := uint32(1)
	for i := range values {
		state = state*1664525 + 1013904223
		values[i] = byte('a' + (state>>24)%26)
	}
	begin := time.Now()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(5*time.Millisecond), kgo.ProducerBatchMaxBytes(1000000), kgo.MaxBufferedRecords(500000))
	must(err)
	delivered := 0
	for i := 0; i < count; i++ {
		at := (i % distinct) * size
		client.Produce(context.Background(), &kgo.Record{Topic: topic, Value: values[at : at+size]},
			func(_ *kgo.Record, err error) { must(err); delivered++ })
	}
	must(client.Flush(context.Background()))
	fmt.Printf("{\"records\":%d,\"seconds\":%.4f}\n", delivered, time.Since(begin).Seconds())
}

func group(bootstrap, topic string, want int, name string) {
	begin := time.Now()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(name), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(err)
	var records, bytes int
	var first float64
	withHash := os.Getenv("BENCH_HASH") == "1"
	var sum uint64
	for records < want {
		fetches := client.PollFetches(context.Background())
		for _, e := range fetches.Errors() {
			must(e.Err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if records == 0 {
				first = time.Since(begin).Seconds()
			}
			records++
			bytes += len(r.Value)
			if withHash {
				sum += uint64(crc32.ChecksumIEEE(r.Value))
			}
		})
	}
	fmt.Printf("{\"records\":%d,\"bytes\":%d,\"first\":%.4f,\"seconds\":%.4f,\"hash\":\"%016x\"}\n",
		records, bytes, first, time.Since(begin).Seconds(), sum)
}
