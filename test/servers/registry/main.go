// An independent schema registry for tests: franz-go's, on a free port of 127.0.0.1, which it prints.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(listener, srfake.New().Handler()))
}
