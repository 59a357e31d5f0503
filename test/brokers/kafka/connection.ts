/**
 * One client's connection to one broker, without a socket: bytes come in by `receive`, answers go out through the
 * sink. As in a real broker one request is in work at a time and answers leave in the order of the requests.
 */
import {
  type ApiName,
  apiName,
  type DecodedRequest,
  type Draft,
  decodeRequest,
  decodeRequestHeader,
  encodeResponse,
  type RequestHeader,
  type ResponseOf,
} from "../../../src/adapters/kafka/wire/protocol.ts";
import { refuseVersion } from "./apis/api-versions.ts";
import { type Call, handle } from "./apis/table.ts";
import type { Broker, FakeCluster, LiveConnection } from "./cluster.ts";
import { topLevelError } from "./error-response.ts";
import type { SaslExchange } from "./sasl-server.ts";
import type { Action } from "./script.ts";

/** Where the connection's bytes go. */
export interface ConnectionSink {
  send(bytes: Uint8Array): void;
  /** `reset`: not in order. */
  close(reset: boolean): void;
}

/** What a login has come to. */
export type Login =
  | { readonly state: "none" }
  | { readonly state: "talking"; readonly mechanism: string; readonly exchange: SaslExchange }
  /** `until`: monotonic milliseconds, null for ever. */
  | { readonly state: "done"; readonly until: number | null };

type AnyResponse = Draft<ResponseOf<ApiName>>;

/** As socket.request.max.bytes of a broker. */
const MAX_REQUEST_BYTES = 104_857_600;
const LOGIN_APIS: readonly ApiName[] = ["ApiVersions", "SaslHandshake", "SaslAuthenticate"];

export class BrokerConnection implements LiveConnection {
  readonly cluster: FakeCluster;
  readonly broker: Broker;
  readonly number: number;
  login: Login = { state: "none" };
  readonly #sink: ConnectionSink;
  #pending: Uint8Array = new Uint8Array(0);
  #busy = false;
  #open = true;
  #closing = false;
  readonly #cleanups = new Set<() => void>();

  constructor(cluster: FakeCluster, node: number, sink: ConnectionSink) {
    this.cluster = cluster;
    this.broker = cluster.broker(node);
    this.number = cluster.nextConnection();
    this.#sink = sink;
    this.broker.connections.add(this);
  }

  get open(): boolean {
    return this.#open;
  }

  /** Bytes from the client, in any pieces. */
  receive(chunk: Uint8Array) {
    if (!this.#open) return;
    this.#pending = this.#pending.length === 0 ? chunk.slice() : Buffer.concat([this.#pending, chunk]);
    this.#pump();
  }

  /** The client has gone. */
  gone() {
    if (!this.#open) return;
    this.#open = false;
    this.broker.connections.delete(this);
    for (const clean of this.#cleanups) clean();
  }

  cut() {
    this.#close(true);
  }

  #close(reset: boolean) {
    if (!this.#open) return;
    this.gone();
    this.#sink.close(reset);
  }

  /** Runs `clean` when the connection ends, unless the returned function was called first. */
  onEnd(clean: () => void): () => void {
    this.#cleanups.add(clean);
    return () => this.#cleanups.delete(clean);
  }

  /** A client that sends this is at fault: says why and ends the connection, as brokers do (without the saying). */
  complain(reason: string) {
    this.cluster.complain(`node ${this.broker.id}, connection ${this.number}: ${reason}`);
    this.#close(false);
  }

  #pump() {
    while (this.#open && !this.#busy) {
      const request = this.#nextRequest();
      if (request === null) return;
      this.#busy = true;
      this.#serve(request);
    }
  }

  #nextRequest(): Uint8Array | null {
    const bytes = this.#pending;
    if (bytes.length < 4) return null;
    const size = new DataView(bytes.buffer, bytes.byteOffset).getInt32(0);
    if (size < 8 || size > MAX_REQUEST_BYTES) {
      this.complain(`a request of ${size} bytes`);
      return null;
    }
    if (bytes.length < 4 + size) return null;
    this.#pending = bytes.subarray(4 + size);
    return bytes.subarray(4, 4 + size);
  }

  #serve(bytes: Uint8Array) {
    const header = decodeRequestHeader(bytes);
    const refusal = this.#refusalOf(header);
    if (refusal === "answered") return;
    if (refusal !== null) return this.complain(refusal);
    let request: DecodedRequest;
    try {
      request = decodeRequest(bytes);
    } catch (e) {
      return this.complain(e instanceof Error ? e.message : String(e));
    }
    this.cluster.note(this.broker.id, this.number, request);
    const gate = this.#loginGate(request.api);
    if (gate !== null) return this.complain(gate);
    this.#act(request, this.cluster.script.take(request, this.broker.id));
  }

  /** Why no broker would read on; "answered" for an ApiVersions request that was told the right version. */
  #refusalOf(header: RequestHeader): string | null {
    const api = apiName(header.apiKey);
    const range = api === null ? undefined : this.broker.profile.versions[api];
    if (api === null || range === undefined) return `api key ${header.apiKey} is not served`;
    if (header.version >= range[0] && header.version <= range[1]) return null;
    const body = api === "ApiVersions" ? refuseVersion(this.broker.profile) : null;
    if (body === null) return `${api} v${header.version} is outside of ${range[0]} to ${range[1]}`;
    this.#send(encodeResponse("ApiVersions", 0, header.correlationId, body));
    return "answered";
  }

  #loginGate(api: ApiName): string | null {
    if (this.cluster.sasl === null || LOGIN_APIS.includes(api)) return null;
    if (this.login.state !== "done") return `${api} before a login`;
    const { until } = this.login;
    return until !== null && this.cluster.clock.monotonic() >= until ? `${api} after the login ended` : null;
  }

  #act(request: DecodedRequest, action: Action | null) {
    const answer = (body: AnyResponse) => this.#answer(request, body, action);
    if (action?.do === "stall") return;
    if (action?.do === "drop" && action.when === "before") return this.#close(true);
    if (action?.do === "respond") return answer(action.body(request));
    if (action?.do === "error") return answer(topLevelError(request, action.code));
    this.#run(request, answer);
  }

  #run(request: DecodedRequest, answer: (body: AnyResponse) => void) {
    let answered = false;
    const once = (go: () => void) => {
      if (answered || !this.#open) return;
      answered = true;
      go();
    };
    handle({
      cluster: this.cluster,
      broker: this.broker,
      connection: this,
      request,
      reply: (body: AnyResponse) => once(() => answer(body)),
      silent: () => once(() => this.#finish()),
    } as Call<ApiName>);
  }

  #answer(request: DecodedRequest, body: AnyResponse, action: Action | null) {
    if (action?.do === "drop") return this.#close(true);
    const changed = action?.do === "edit" ? action.change(body, request) : body;
    const correlationId = request.correlationId + (action?.do === "miscount" ? action.by : 0);
    const bytes = encodeResponse(request.api, request.version, correlationId, changed);
    if (action?.do === "truncate") {
      this.#sink.send(bytes.subarray(0, action.bytes));
      return this.#close(false);
    }
    const sent = action?.do === "bytes" ? action.change(bytes) : bytes;
    if (action?.do !== "delay") return this.#send(sent);
    const timer = this.cluster.clock.after(action.ms, () => {
      if (this.#open) this.#send(sent);
    });
    this.onEnd(() => timer.cancel());
  }

  #send(bytes: Uint8Array) {
    this.#sink.send(bytes);
    this.#finish();
  }

  #finish() {
    this.#busy = false;
    // A refused login ends the connection once it has been told.
    if (this.#closing) this.#close(false);
    else this.#pump();
  }

  /** Ends the connection after the answer in work. */
  closeAfterAnswer() {
    this.#closing = true;
  }
}
