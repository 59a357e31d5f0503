/** Faults that are planted before the judgement, to see that it finds them. */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { TablePlace } from "./table.ts";

/** A row that is missing, there twice or another one; a raw file that is missing; records that were asked for again. */
export const CANARIES = ["drop", "double", "alter", "skip", "reread"] as const;
export type Canary = (typeof CANARIES)[number];

export interface Garden {
  readonly table: TablePlace;
  /** The folder with all of raw. */
  readonly landing: string;
}

const ONE = "ctid = (select min(ctid) from public.torture)";

/** What `reread` plants is in the judge. */
export async function plant(canary: Canary | null, { table, landing }: Garden): Promise<void> {
  switch (canary) {
    case "drop":
      await table.ask(`delete from public.torture where ${ONE}`);
      return;
    case "double":
      await table.ask(`insert into public.torture select * from public.torture where ${ONE}`);
      return;
    case "alter":
      await table.ask(`update public.torture set _twg_source_value = 'x' where ${ONE}`);
      return;
    case "skip": {
      const files = readdirSync(landing, { recursive: true, encoding: "utf8" });
      rmSync(join(landing, files.find((f) => f.endsWith(".parquet")) ?? ""));
      return;
    }
    case "reread":
    case null:
      return;
  }
}
