/** Lines of the refused rows of a set, and what becomes of their positions. */
import { normalRanges, subtractRanges } from "../../../core/coverage/ranges.ts";
import { type Failure, toWire } from "../../../core/failure/failure.ts";
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
    return spans.flatMap(({ stream, from, next }) =>
      subtractRanges([{ from, next }], this.#holes(stream)).map((r) => ({ stream, ...r })),
    );
  }

  /** `failure`: why they are nowhere; null: they are durable with the set. */
  told(failure: Failure | null): { readonly leftOut?: RefusedRows } {
    if (this.#origins.length === 0) return {};
    const codes = [...Map.groupBy(this.#origins, (o) => o.code)].map(
      ([code, all]) => [code, all.length] as const,
    );
    const streams = new Set(this.#origins.map((o) => o.stream));
    const uncovered =
      failure === null
        ? []
        : [...streams].flatMap((stream) => this.#holes(stream).map((r) => ({ stream, ...r })));
    return { leftOut: { codes, uncovered, failure: failure === null ? null : toWire(failure) } };
  }

  clear(): void {
    this.#lines = [];
    this.#origins = [];
    this.#bytes = 0;
  }

  #holes(stream: string) {
    const own = this.#origins.filter((o) => o.stream === stream);
    return normalRanges(own.map(({ offset }) => ({ from: offset, next: offset + 1n })));
  }
}
