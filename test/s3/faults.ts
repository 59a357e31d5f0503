/** Faults by one seed: which of the requests that a proxy sees are done what to. */
import { SeededChance } from "../sim/chance.ts";
import type { Decide, Fault, S3Operation } from "./fault-proxy.ts";

const CONDITIONAL: readonly S3Operation[] = ["Put", "Complete"];

/** Every kind of fault that fits the operation. */
export function faultsOf(operation: S3Operation): readonly Fault[] {
  const conditional = CONDITIONAL.includes(operation);
  return [
    { t: "cut" },
    { t: "cut_body" },
    { t: "cut_answer" },
    { t: "lose" },
    { t: "delay", ms: 40 },
    { t: "answer", status: 500, code: "InternalError" },
    { t: "answer", status: 503, code: "SlowDown" },
    { t: "answer_after", status: 500, code: "InternalError" },
    { t: "answer_after", status: 503, code: "ServiceUnavailable" },
    ...(conditional
      ? ([
          { t: "answer", status: 409, code: "ConditionalRequestConflict" },
          { t: "answer", status: 412, code: "PreconditionFailed" },
          { t: "twice" },
        ] as const)
      : []),
    ...(operation === "Complete"
      ? ([
          { t: "error_body", done: true },
          { t: "error_body", done: false },
        ] as const)
      : []),
  ];
}

/** `share`: of the requests, so many meet a fault. */
export function seededFaults(seed: number, share: number): Decide {
  const chance = new SeededChance(seed);
  return ({ operation }) => {
    if (operation === "Other" || chance.next() >= share) return { t: "pass" };
    const faults = faultsOf(operation);
    return faults[chance.int(faults.length)] ?? { t: "pass" };
  };
}
