// Orders into structs by protobuf-go, on one core: the peer of decode-protobuf.
//
//	protobuf-go PAYLOADS ENDS ROUNDS
//
// PAYLOADS: payloads back to back; ENDS: where each ends, int32. One line of JSON for the fastest round.
package main

import (
	"encoding/binary"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"google.golang.org/protobuf/proto"

	"twg/bench/peers/protobuf-go/orders"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func cpu() float64 {
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}

type result struct {
	Records int     `json:"records"`
	Wall    float64 `json:"wall"`
	Cpu     float64 `json:"cpu"`
	Sums    [4]int  `json:"sums"`
}

func main() {
	runtime.GOMAXPROCS(1)
	payloads, err := os.ReadFile(os.Args[1])
	must(err)
	raw, err := os.ReadFile(os.Args[2])
	must(err)
	rounds, err := strconv.Atoi(os.Args[3])
	must(err)
	ends := make([]int, len(raw)/4)
	for i := range ends {
		ends[i] = int(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	best := result{Wall: 1e9}
	for r := 0; r < rounds; r++ {
		began, used := time.Now(), cpu()
		sums := [4]int{}
		from := 0
		for _, to := range ends {
			order := &orders.Order{}
			must(proto.Unmarshal(payloads[from:to], order))
			from = to
			sums[0] += int(order.Id)
			for _, item := range order.Items {
				sums[1]++
				sums[2] += int(item.Qty)
				sums[3] += len(item.Sku)
			}
		}
		now := result{len(ends), time.Since(began).Seconds(), cpu() - used, sums}
		if now.Wall < best.Wall {
			best = now
		}
	}
	must(json.NewEncoder(os.Stdout).Encode(best))
}
