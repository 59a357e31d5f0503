/** The assignors by the name under which groups know them. */
import type { Assignor } from "./assignor.ts";
import { range } from "./range.ts";
import { roundRobin } from "./round-robin.ts";
import { cooperativeSticky, sticky } from "./sticky.ts";

export const ASSIGNOR_NAMES = ["cooperative-sticky", "sticky", "range", "roundrobin"] as const;
export type AssignorName = (typeof ASSIGNOR_NAMES)[number];

export const ASSIGNORS: { readonly [N in AssignorName]: Assignor } = {
  "cooperative-sticky": cooperativeSticky,
  sticky,
  range,
  roundrobin: roundRobin,
};
