/** Goal: a run that fills windows sees its leases for claims, and nothing else to fill. Method: windows that a test gives and takes. */
import { beforeEach, expect, test } from "bun:test";
import { Failure } from "../../../src/core/failure/failure.ts";
import type { LeasedWindow, Range, WindowCoverage } from "../../../src/core/ports/coverage.ts";
import { LeasedCoverage } from "../../../src/core/recovery/leased-coverage.ts";

const [S, OTHER] = ["kafka/c/orders/0/0", "kafka/c/orders/0/1"];
const range = (from: number, next: number): Range => ({ from: BigInt(from), next: BigInt(next) });
/** Under it recovery writes a Kafka sink. */
const WRITER = { transactionalId: "w" };

function window(more: object = {}): LeasedWindow {
  const authority = { kind: "lease", window: "w", lease: 7, stream: S, ...more } as LeasedWindow["authority"];
  return { stream: S, range: range(10, 40), covered: [range(0, 10)], authority };
}

let held: boolean;
let fenced: Failure | null;
const of = {
  holds: () => held,
  get fenced() {
    return fenced;
  },
  covered: async () => [range(0, 10)],
} as unknown as WindowCoverage;
const leased = (w: LeasedWindow) =>
  new LeasedCoverage(of, [w], new Map([[S, [range(10, 20), range(30, 40)]]]));

beforeEach(() => {
  held = true;
  fenced = null;
});

test("a claim is the lease, and all counts as covered but what is wanted", async () => {
  const [mine, other] = await leased(window()).claim([S, OTHER]);
  expect(mine?.authority).toEqual(window().authority);
  expect(mine?.covered.map((r) => Number(r.from))).toEqual([0, 20, 40]);
  // Nothing is lacking there, so nothing is written under the lease that is none.
  expect([other?.authority, other?.covered.length]).toEqual([
    { kind: "lease", window: "", lease: 0, stream: OTHER },
    1,
  ]);
  expect(await leased(window()).covered(S)).toEqual([range(0, 10)]);
});

test("where the lease is over, or the sink another's, nothing is claimed any more", async () => {
  const coverage = leased(window());
  held = false;
  expect(coverage.fenced?.message).toBe(`the lease of ${S} [10, 40) is over`);
  await expect(coverage.claim([S])).rejects.toThrow("is over");
  fenced = new Failure("coverage.fenced", "another process took over");
  expect(coverage.fenced).toBe(fenced);
});

test("a second claim goes on under the same lease, unless that names who writes: his sets can be sent once", async () => {
  const again = leased(window());
  expect([(await again.claim([S])).length, (await again.claim([S])).length]).toEqual([1, 1]);
  const spent = leased(window({ writer: WRITER }));
  await spent.claim([S]);
  await expect(spent.claim([S])).rejects.toThrow(`a set under the lease of ${S} did not land`);
  expect(spent.fenced?.code).toBe("coverage.fenced");
});

test("what live ingest remembers of topics and losses is none of its own", async () => {
  const coverage = leased(window());
  const memory = { topicId: "t", incarnation: 3 };
  expect([await coverage.topic(), await coverage.rememberTopic("orders", memory)]).toEqual([null, memory]);
  await expect(coverage.lease()).rejects.toThrow("leases nothing");
  await Promise.all([
    coverage.open(),
    coverage.heartbeat(),
    coverage.recordLost(),
    coverage.rememberOrigins(),
    coverage.close(),
  ]);
});
