/**
 * Brings an intent to its end, whoever began it: published whole, or known to be gone whole. Used by the claim of
 * a stream for what its former owner left, and by an owner whose own staged objects have vanished.
 */
import { Failure } from "../failure/failure.ts";
import type { Intent } from "../ports/coverage.ts";
import type { ObjectStore, Target, TargetState } from "../ports/object-store.ts";

/** Called with the name of the point that was reached; a test ends the process there. */
export type Hook = (point: string) => void | Promise<void>;

export const SETTLE_POINTS = [
  "settle_before_publish",
  "settle_after_publish_one",
  "settle_before_discard",
  "settle_after_discard",
] as const;

/** How often another process may take staged bytes away between our look and our move before we give up. */
const ROUNDS = 3;

/**
 * "published": every target is visible and durable. "discarded": none is, and none can become so. Throws
 * coverage.intent_torn if some are published and others are gone for ever, and whatever the store throws.
 */
export async function settleIntent(
  objects: ObjectStore,
  intent: Intent,
  hook?: Hook,
): Promise<"published" | "discarded"> {
  for (let round = 1; ; round++) {
    try {
      return await settleOnce(objects, intent, hook);
    } catch (e) {
      // Between look and publish another process may have discarded or published: look again.
      if (!(e instanceof Failure) || e.code !== "store.absent" || round === ROUNDS) throw e;
    }
  }
}

async function settleOnce(
  objects: ObjectStore,
  intent: Intent,
  hook?: Hook,
): Promise<"published" | "discarded"> {
  const seen = await look(objects, intent.targets);
  if (!seen.includes("absent")) return publishAll(objects, intent, hook);
  if (seen.includes("published")) {
    // A look that fell on the moment of a rename is not yet proof.
    const again = await look(objects, intent.targets);
    if (again.includes("absent")) throw torn(objects, intent, again);
    return publishAll(objects, intent, hook);
  }
  await hook?.("settle_before_discard");
  for (const target of intent.targets) await objects.discard(target);
  await hook?.("settle_after_discard");
  // Only a look after the last discard proves that nothing can appear any more.
  const left = await look(objects, intent.targets);
  if (left.every((s) => s === "absent")) return "discarded";
  if (left.every((s) => s === "published")) return publishAll(objects, intent, hook);
  if (left.includes("published")) throw torn(objects, intent, left);
  throw new Failure(
    "coverage.unavailable",
    `staged objects of intent ${intent.id} are there after they were discarded`,
    {
      at: objects.place,
    },
  );
}

/** All at once: a store may have to look for a while before it can say that something is gone. */
function look(objects: ObjectStore, targets: readonly Target[]): Promise<readonly TargetState[]> {
  return Promise.all(targets.map((target) => objects.probe(target)));
}

/** Also those that are visible already: whoever renamed them may have died before the folder was durable. */
async function publishAll(objects: ObjectStore, intent: Intent, hook?: Hook): Promise<"published"> {
  await hook?.("settle_before_publish");
  for (const target of intent.targets) {
    await objects.publish(target);
    await hook?.("settle_after_publish_one");
  }
  return "published";
}

function torn(objects: ObjectStore, intent: Intent, states: readonly TargetState[]): Failure {
  const named = (state: TargetState): string =>
    intent.targets.flatMap((t, i) => (states[i] === state ? [t.key] : [])).join(", ");
  return new Failure(
    "coverage.intent_torn",
    `intent ${intent.id}: ${named("published")} is published, ${named("absent")} is gone, staged or not`,
    {
      at: objects.place,
      hint: "Bring the missing files back, or move the published ones of this intent away: then it is dropped and its records are read again",
    },
  );
}
