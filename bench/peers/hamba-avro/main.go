// hamba/avro into structs: main SCHEMA PAYLOADS ROUNDS. Payload files: each payload after its length (four bytes, big
// endian). Prints {"records_per_second", "cpu_per_million", "sum"} of the best round.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hamba/avro/v2"
)

type item struct {
	Sku   string `avro:"sku"`
	Qty   int    `avro:"qty"`
	Price string `avro:"price"`
}

type flags struct {
	Gift    bool `avro:"gift"`
	Express bool `avro:"express"`
}

type order struct {
	ID       int64     `avro:"id"`
	Customer string    `avro:"customer"`
	TS       time.Time `avro:"ts"`
	Amount   string    `avro:"amount"`
	Country  string    `avro:"country"`
	Items    []item    `avro:"items"`
	Flags    flags     `avro:"flags"`
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func main() {
	text, err := os.ReadFile(os.Args[1])
	check(err)
	schema, err := avro.Parse(string(text))
	check(err)
	file, err := os.ReadFile(os.Args[2])
	check(err)
	rounds, err := strconv.Atoi(os.Args[3])
	check(err)
	var payloads [][]byte
	for len(file) > 0 {
		n := binary.BigEndian.Uint32(file)
		payloads = append(payloads, file[4:4+n])
		file = file[4+n:]
	}
	var best, bestCPU time.Duration = 1 << 62, 1 << 62
	var sum int64
	for r := 0; r < rounds; r++ {
		from, fromCPU := time.Now(), cpu()
		sum = 0
		for _, p := range payloads {
			var o order
			check(avro.Unmarshal(schema, p, &o))
			sum += o.ID + int64(len(o.Items))
		}
		best = min(best, time.Since(from))
		bestCPU = min(bestCPU, cpu()-fromCPU)
	}
	n := float64(len(payloads))
	fmt.Printf("{\"records_per_second\":%.0f,\"cpu_per_million\":%.4f,\"sum\":%d}\n",
		n/best.Seconds(), bestCPU.Seconds()*1e6/n, sum)
}
