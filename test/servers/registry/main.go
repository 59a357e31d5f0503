// An independent schema registry for tests: franz-go's, on a free port of 127.0.0.1, which it prints. Protobuf's sources are
// compiled by buf's compiler: one that it refuses is not registered, and clients that ask for `format=serialized` get descriptors,
// as of Confluent's registry.
package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"github.com/twmb/franz-go/pkg/sr/srfake"
	"google.golang.org/protobuf/proto"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("http://%s\n", listener.Addr())
	fmt.Fprintln(os.Stderr, http.Serve(listener, compiling{srfake.New().Handler()}))
}

type compiling struct{ registry http.Handler }

func (c compiling) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		c.post(w, r)
	} else if r.URL.Query().Get("format") == "serialized" {
		c.serialized(w, r)
	} else {
		c.registry.ServeHTTP(w, r)
	}
}

// Of a schema without references; one that has some goes on unseen.
func (c compiling) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var posted struct {
		Schema, SchemaType string
		References         []any
	}
	if json.Unmarshal(body, &posted) == nil && posted.SchemaType == "PROTOBUF" && len(posted.References) == 0 && isSource(posted.Schema) {
		if _, err := compiled(posted.Schema); err != nil {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = json.NewEncoder(w).Encode(map[string]any{"error_code": 42201, "message": err.Error()})
			return
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c.registry.ServeHTTP(w, r)
}

func (c compiling) serialized(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	query.Del("format")
	r.URL.RawQuery = query.Encode()
	answer := httptest.NewRecorder()
	c.registry.ServeHTTP(answer, r)
	out := answer.Body.Bytes()
	var found map[string]any
	if json.Unmarshal(out, &found) == nil && found["schemaType"] == "PROTOBUF" {
		if text, is := found["schema"].(string); is && isSource(text) {
			if file, err := compiled(text); err == nil {
				found["schema"] = base64.StdEncoding.EncodeToString(file)
				out, _ = json.Marshal(found)
			}
		}
	}
	w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
	w.WriteHeader(answer.Code)
	_, _ = w.Write(out)
}

// Some clients register descriptors.
func isSource(schema string) bool {
	_, err := base64.StdEncoding.DecodeString(schema)
	return err != nil
}

// The file's descriptor.
func compiled(source string) ([]byte, error) {
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: protocompile.SourceAccessorFromMap(map[string]string{"schema.proto": source}),
		}),
	}
	files, err := compiler.Compile(context.Background(), "schema.proto")
	if err != nil {
		return nil, err
	}
	return proto.Marshal(protoutil.ProtoFromFileDescriptor(files[0]))
}
