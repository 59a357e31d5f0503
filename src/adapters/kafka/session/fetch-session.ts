/**
 * The client's half of a fetch session (KIP-227). The broker remembers what it was asked for, so a request names
 * only partitions that changed and those that it shall forget, and a response omits partitions with nothing new.
 *
 *   (id 0, epoch 0)   asks for a new session with all partitions
 *   (id n, epoch e)   e = 1, 2, ..., 2^31 - 1, then 1 again
 *   (id n, epoch -1)  closes it
 *
 * Any doubt (an error of the session, a lost or failed request) ends in a full request: that costs bytes only.
 */
export interface WantedPartition {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
  readonly leaderEpoch: number;
  readonly position: bigint;
  readonly lastFetchedEpoch: number;
  readonly maxBytes: number;
}

export interface FetchPlan {
  readonly sessionId: number;
  readonly sessionEpoch: number;
  /** What goes into the request. */
  readonly send: readonly WantedPartition[];
  readonly forget: readonly WantedPartition[];
}

const LAST_EPOCH = 0x7fffffff;

function keyOf(p: WantedPartition, byId: boolean): string {
  return `${byId ? p.topicId : p.topic}/${p.partition}`;
}

function same(a: WantedPartition, b: WantedPartition): boolean {
  return (
    a.position === b.position &&
    a.leaderEpoch === b.leaderEpoch &&
    a.lastFetchedEpoch === b.lastFetchedEpoch &&
    a.maxBytes === b.maxBytes
  );
}

/** Of a request that follows one with `epoch`: 0 would ask for a new session, so it is left out. */
export function nextSessionEpoch(epoch: number): number {
  return epoch >= LAST_EPOCH ? 1 : epoch + 1;
}

export class FetchSession {
  #id = 0;
  /** 0: the next request is a full one. */
  #epoch = 0;
  #known = new Map<string, WantedPartition>();
  #pending: Map<string, WantedPartition> | null = null;
  #byId: boolean | null = null;

  /** Broker's id of the session, 0 while there is none. */
  get id(): number {
    return this.#id;
  }

  /**
   * The next request for exactly these partitions, in their order (the broker serves the front of the list first).
   * `byId`: the request's version names topics by id; a change of that needs a new session.
   */
  plan(wanted: readonly WantedPartition[], byId: boolean): FetchPlan {
    if (this.#byId !== byId) this.reset();
    this.#byId = byId;
    const next = new Map<string, WantedPartition>();
    for (const p of wanted) next.set(keyOf(p, byId), p);
    this.#pending = next;
    if (this.#epoch === 0)
      return { sessionId: this.#id, sessionEpoch: 0, send: [...next.values()], forget: [] };
    const send: WantedPartition[] = [];
    for (const [key, p] of next) {
      const known = this.#known.get(key);
      if (known === undefined || !same(known, p)) send.push(p);
    }
    const forget: WantedPartition[] = [];
    for (const [key, p] of this.#known) if (!next.has(key)) forget.push(p);
    return { sessionId: this.#id, sessionEpoch: this.#epoch, send, forget };
  }

  /** The broker answered the planned request without a top-level error. Id 0: it holds no session for us. */
  answered(sessionId: number): void {
    if (this.#pending === null) return;
    this.#known = this.#pending;
    this.#pending = null;
    if (sessionId === 0) {
      this.reset();
      return;
    }
    this.#id = sessionId;
    this.#epoch = nextSessionEpoch(this.#epoch);
  }

  /**
   * The request failed, was not answered, or the session was refused (errors 70, 71, 106). The next plan is full;
   * with an id, the broker replaces that session by the new one and need not keep two.
   */
  reset(keepId = false): void {
    if (!keepId) this.#id = 0;
    this.#epoch = 0;
    this.#known = new Map();
    this.#pending = null;
  }
}
