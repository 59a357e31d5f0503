/**
 * Small objects in a store that writes on condition: what coverage needs of an object store. A revision is whatever
 * the store answers for "this very content" (an entity tag, a generation); equal revisions mean equal content.
 */

export interface ObjectHead {
  readonly revision: string;
  readonly bytes: number;
  /** Lower-case names. */
  readonly metadata: Readonly<Record<string, string>>;
}

export interface StoredObject extends ObjectHead {
  readonly content: Uint8Array;
}

/** null: only if nothing is there. */
export type Condition = { readonly revision: string | null };

/**
 * stored: durable, under this revision. refused: the condition did not hold, or seemed not to; a store that was sent
 * the request twice by somebody in between says so of its own success. unknown: it may have, or may still have, its
 * effect. After the last two the caller looks at what is there.
 */
export type PutOutcome =
  | { readonly outcome: "stored"; readonly revision: string }
  | { readonly outcome: "refused" | "unknown" };

export interface ConditionalObjects {
  /** Where it is, for messages. No secrets. Keys of the calls are relative to it. */
  readonly place: string;
  head(key: string): Promise<ObjectHead | null>;
  /** Throws bytes.limit for an object above `maxBytes`, before it is read. */
  get(key: string, maxBytes: number): Promise<StoredObject | null>;
  /** Throws a Failure only where it is sure that there is no effect and never will be. */
  putIf(
    key: string,
    content: Uint8Array,
    metadata: Readonly<Record<string, string>>,
    condition: Condition,
  ): Promise<PutOutcome>;
  /** Durable when it resolves; replaces what is there. Repeated until it is, so `content` must be the key's only one. */
  put(key: string, content: Uint8Array): Promise<void>;
  /** Keys under a prefix, all of them. */
  list(prefix: string): Promise<readonly ListedObject[]>;
  /** Idempotent. */
  remove(key: string): Promise<void>;
}

export interface ListedObject {
  readonly key: string;
  readonly bytes: number;
  /** Age of the last write by the store's own clock, ms. */
  readonly ageMs: number;
}
