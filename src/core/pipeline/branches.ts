/** All sinks of a lane beside the primary one, in an order in which each stands behind those that it comes after. */

import { Failure } from "../failure/failure.ts";
import type { BranchBatch } from "../ports/branch-parts.ts";
import type { ToBranch } from "../ports/lane.ts";
import type { Span, StreamKey } from "../records/stream.ts";
import type { Branch } from "./branch.ts";

export interface PlacedBranch<B extends BranchBatch> {
  readonly branch: Branch<B>;
  /** Indexes of those before it that must have what it gets. */
  readonly after: readonly number[];
}

export class Branches<B extends BranchBatch> {
  readonly #all: readonly PlacedBranch<B>[];

  constructor(all: readonly PlacedBranch<B>[]) {
    this.#all = all;
    for (const [i, { branch }] of all.entries()) {
      branch.whenDetached = () => {
        // What they hold open would never become visible.
        for (const b of all) if (b.after.includes(i)) b.branch.detach(waits());
      };
    }
  }

  /** One of them wants the primary's set sealed. */
  get pressing(): boolean {
    return this.#all.some((b) => b.branch.pressing);
  }

  /** One of them needs a pause before it is given more. */
  get crowded(): boolean {
    return this.#all.some((b) => b.branch.crowded);
  }

  /** Where a stream is to be cut, so that each sink has all of a piece or nothing. */
  skips(stream: number): readonly (readonly { readonly from: bigint; readonly next: bigint }[])[] {
    return this.#all.map((b) => b.branch.skip(stream)).filter((s) => s.length > 0);
  }

  /** `of`: what sink number i gets of it. `passed`: those that it goes by, which stay attached. */
  give(
    stream: number,
    key: StreamKey,
    of: (i: number) => B,
    span: Span,
    passed: (i: number) => boolean = () => false,
  ): void {
    const took: boolean[] = [];
    for (const [i, { branch, after }] of this.#all.entries()) {
      const takes = !passed(i) && after.every((j) => took[j]);
      took[i] = takes ? branch.give(stream, key, of(i)) : branch.miss(key, span);
    }
  }

  miss(key: StreamKey, span: Span, failure: Failure | null): void {
    for (const { branch } of this.#all) {
      if (failure !== null) branch.detach(failure);
      branch.miss(key, span);
    }
  }

  bundled(): void {
    for (const { branch } of this.#all) branch.bundled();
  }

  /** Resolves when each has room for what comes next, or was waited for long enough. */
  async relief(isReplay: boolean): Promise<void> {
    for (const { branch } of this.#all) await branch.relief(isReplay);
  }

  primarySealed(reason: Parameters<Branch<B>["primarySealed"]>[0]): void {
    for (const { branch } of this.#all) branch.primarySealed(reason);
  }

  receive(sink: number, m: ToBranch): void {
    this.#all[sink]?.branch.receive(m);
  }

  forget(streams: readonly number[]): void {
    for (const { branch } of this.#all) branch.forget(streams);
  }

  reset(epoch: number): void {
    for (const { branch } of this.#all) branch.reset(epoch);
  }
}

function waits(): Failure {
  return new Failure("sink.behind", "a sink that it comes after has a gap", { retry: true });
}
