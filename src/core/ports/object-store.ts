/**
 * Two-phase objects: written under a staging name or an open upload, made visible later by an idempotent
 * publish. A local folder and an object store are the same thing behind this port.
 */

/** A sealed, durable, not yet visible object. Plain data: it is written into the intent. */
export interface Target {
  /** Key under which it becomes visible; carries the intent's id, so no two writers share one. */
  readonly key: string;
  /** How to find the staged bytes: a temporary name, or an upload id with its parts. */
  readonly staging: string;
  readonly bytes: number;
  readonly rows: number;
}

export interface StagedObject {
  readonly key: string;
  append(bytes: Uint8Array): Promise<void>;
  /** Durable under its staging name when this resolves. */
  seal(rows: number): Promise<Target>;
  abort(): Promise<void>;
}

export type TargetState = "published" | "staged" | "absent";

export interface ObjectStore {
  /** Where it is, for messages and plans. No secrets. */
  readonly place: string;
  stage(key: string): Promise<StagedObject>;
  probe(target: Target): Promise<TargetState>;
  /** Makes it visible and durable under its key. Idempotent, by whomever. Fails with store.absent if neither is there. */
  publish(target: Target): Promise<void>;
  /** Removes staged bytes only; never a published object. Idempotent. */
  discard(target: Target): Promise<void>;
  /** Removes staged objects that `keep` does not name (by `staging`). Only our own ever match. Returns their names. */
  sweep(keep: ReadonlySet<string>): Promise<readonly string[]>;
}
