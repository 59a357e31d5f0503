/** The plainest client: sends one request at a time to a broker's connection and keeps what comes back. */
import {
  type ApiName,
  correlationIdOf,
  type Draft,
  decodeResponse,
  encodeRequest,
  type RequestOf,
  type ResponseOf,
} from "../../../src/adapters/kafka/wire/protocol.ts";
import { type ClusterOptions, FakeCluster } from "./cluster.ts";
import { BrokerConnection } from "./connection.ts";
import { ManualClock } from "./manual-clock.ts";

export class DirectClient {
  readonly server: BrokerConnection;
  /** Answers in their order, without the size. */
  readonly answers: Uint8Array[] = [];
  closed: "open" | "in order" | "reset" = "open";
  #correlationId = 0;
  #asked: { api: ApiName; version: number } | null = null;

  constructor(cluster: FakeCluster, node = 1) {
    this.server = new BrokerConnection(cluster, node, {
      send: (bytes) => this.answers.push(bytes.slice(4)),
      close: (reset) => {
        this.closed = reset ? "reset" : "in order";
      },
    });
  }

  send<A extends ApiName>(api: A, version: number, body: Draft<RequestOf<A>>): void {
    this.#asked = { api, version };
    this.server.receive(encodeRequest(api, version, ++this.#correlationId, "test", body));
  }

  /** The last answer, null while there is none to the last request. */
  answer<A extends ApiName>(api: A): ResponseOf<A> | null {
    const last = this.answers[this.answers.length - 1];
    if (this.#asked?.api !== api || last === undefined || correlationIdOf(last) !== this.#correlationId)
      return null;
    return decodeResponse(api, this.#asked.version, last);
  }

  /** Sends and takes the answer that must be there at once. */
  ask<A extends ApiName>(api: A, version: number, body: Draft<RequestOf<A>>): ResponseOf<A> {
    this.send(api, version, body);
    const answer = this.answer(api);
    if (answer === null) throw new Error(`no answer to ${api} v${version}; connection ${this.closed}`);
    return answer;
  }
}

export interface World {
  readonly clock: ManualClock;
  readonly cluster: FakeCluster;
  readonly client: DirectClient;
}

/** One cluster on a clock of its own, with topic "t" of one partition and a client of broker 1. */
export function world(options: Partial<ClusterOptions> = {}, partitions = 1): World {
  const clock = new ManualClock();
  const cluster = new FakeCluster({ ...options, clock });
  cluster.createTopic("t", { partitions });
  return { clock, cluster, client: new DirectClient(cluster) };
}
