/**
 * Faults on order. A rule watches for requests and acts on the first `times` that fit; every request meets at most one
 * acting rule, the oldest. Faults of one partition are set at the partition (`FakeCluster.failPartition`), where they
 * take part in fetch sessions and long polls as real errors do.
 */
import type {
  ApiName,
  DecodedRequest,
  Draft,
  ResponseOf,
} from "../../../src/adapters/kafka/wire/protocol.ts";

export type Action =
  /** Only calls back; the request is answered as usual. */
  | { readonly do: "observe"; readonly see: (request: DecodedRequest, node: number) => void }
  /** Answers with this body; the request has no effect. */
  | { readonly do: "respond"; readonly body: (request: DecodedRequest) => Draft<ResponseOf<ApiName>> }
  /** The request takes effect, its response is changed. */
  | {
      readonly do: "edit";
      readonly change: (
        response: Draft<ResponseOf<ApiName>>,
        request: DecodedRequest,
      ) => Draft<ResponseOf<ApiName>>;
    }
  /** Answers with an error for the whole request, where the API has one. */
  | { readonly do: "error"; readonly code: number }
  /** Never answers; what follows on the connection waits for ever. */
  | { readonly do: "stall" }
  /** The answer goes out this much later. */
  | { readonly do: "delay"; readonly ms: number }
  /** Closes the connection, before the request takes effect or after it. */
  | { readonly do: "drop"; readonly when: "before" | "after" }
  /** Changes the bytes of the answer, size included. */
  | { readonly do: "bytes"; readonly change: (bytes: Uint8Array) => Uint8Array }
  /** Sends the first `bytes` of the answer, then closes. */
  | { readonly do: "truncate"; readonly bytes: number }
  /** Answers with a correlation id that is off by this much. */
  | { readonly do: "miscount"; readonly by: number };

export interface Rule {
  readonly api?: ApiName;
  readonly node?: number;
  readonly when?: (request: DecodedRequest) => boolean;
  /** Requests that fit and are let through first. Default 0. */
  readonly skip?: number;
  /** Default 1. */
  readonly times?: number;
  readonly action: Action;
}

export interface ArmedRule {
  /** How many requests it has acted on. */
  readonly fired: number;
  remove(): void;
}

class Armed implements ArmedRule {
  readonly rule: Rule;
  readonly #script: Script;
  skip: number;
  fired = 0;

  constructor(rule: Rule, script: Script) {
    this.rule = rule;
    this.#script = script;
    this.skip = rule.skip ?? 0;
  }

  fits(request: DecodedRequest, node: number): boolean {
    const { api, node: only, when, times } = this.rule;
    if (this.fired >= (times ?? 1)) return false;
    return (
      (api === undefined || api === request.api) &&
      (only === undefined || only === node) &&
      (when?.(request) ?? true)
    );
  }

  remove(): void {
    this.#script.remove(this);
  }
}

export class Script {
  #rules: Armed[] = [];

  on(rule: Rule): ArmedRule {
    const armed = new Armed(rule, this);
    this.#rules.push(armed);
    return armed;
  }

  remove(rule: ArmedRule): void {
    this.#rules = this.#rules.filter((r) => r !== rule);
  }

  clear(): void {
    this.#rules = [];
  }

  /** The action for this request, null for none. Observers see it without using it up. */
  take(request: DecodedRequest, node: number): Action | null {
    for (const armed of this.#rules) {
      if (!armed.fits(request, node)) continue;
      if (armed.skip > 0) {
        armed.skip--;
        continue;
      }
      armed.fired++;
      const { action } = armed.rule;
      if (action.do !== "observe") return action;
      action.see(request, node);
    }
    return null;
  }
}
