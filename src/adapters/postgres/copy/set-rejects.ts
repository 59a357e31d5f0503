/** Lines of the refused rows of a set, and what becomes of their positions. */
import { leftOutRows, withHoles } from "../../../core/delivery/refused-origins.ts";
import type { Failure } from "../../../core/failure/failure.ts";
import type { RefusedRows } from "../../../core/ports/lane.ts";
import type { RefusedOrigin } from "../../../core/ports/table-sink.ts";
import type { Span } from "../../../core/records/stream.ts";

export class SetRejects {
  #lines: string[] = [];
  #origins: RefusedOrigin[] = [];
  #bytes = 0;

  get lines(): readonly string[] {
    return this.#lines;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Of each line it is known which position it is of. */
  get placed(): boolean {
    return this.#origins.length === this.#lines.length;
  }

  add(line: string, origin: RefusedOrigin | null): void {
    this.#lines.push(line);
    this.#bytes += line.length;
    if (origin !== null) this.#origins.push(origin);
  }

  copy(): SetRejects {
    const copy = new SetRejects();
    copy.#lines = [...this.#lines];
    copy.#origins = [...this.#origins];
    copy.#bytes = this.#bytes;
    return copy;
  }

  /** The spans with a hole of one at each of them. */
  without(spans: readonly Span[]): readonly Span[] {
    return withHoles(spans, this.#origins);
  }

  /** `failure`: why they are nowhere; null: they are durable with the set. */
  told(failure: Failure | null): { readonly leftOut?: RefusedRows } {
    return leftOutRows(this.#origins, failure);
  }

  clear(): void {
    this.#lines = [];
    this.#origins = [];
    this.#bytes = 0;
  }
}
