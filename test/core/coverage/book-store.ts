/** The place of a book in memory, whose writes are lost or of unknown outcome by turns. */
import type { VersionedStore, WriteOutcome } from "../../../src/core/ports/versioned-store.ts";

export class BookStore implements VersionedStore {
  readonly place = "memory";
  readonly versions: Uint8Array[] = [];
  /** Of the next writes. */
  readonly outcomes: WriteOutcome[] = [];
  /** Somebody else writes before the next one. */
  meanwhile: (() => Promise<unknown>) | null = null;
  async prepare() {}
  async read() {
    const bytes = this.versions.at(-1);
    return bytes === undefined ? null : { version: this.versions.length, bytes, name: "book.json" };
  }
  async write(expected: number | null, bytes: Uint8Array): Promise<WriteOutcome> {
    const other = this.meanwhile;
    this.meanwhile = null;
    await other?.();
    const planned = this.outcomes.shift() ?? "won";
    if (planned === "lost" || (expected ?? 0) !== this.versions.length) return "lost";
    this.versions.push(bytes);
    this.written.push(`version ${this.versions.length}`);
    return planned;
  }
  /** Everything that became durable, in its order. */
  readonly written: string[] = [];
  readonly segments = new Map<string, Uint8Array>();
  refuses: Error | null = null;
  async putSegment(name: string, bytes: Uint8Array) {
    if (this.refuses !== null) throw this.refuses;
    this.written.push(name);
    this.segments.set(name, bytes);
  }
  async getSegment(name: string) {
    return this.segments.get(name) ?? null;
  }
  async sweep() {}
}
