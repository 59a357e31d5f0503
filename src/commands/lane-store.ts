/** A lane's own store. Apart from what the control thread needs, so that a lane loads no option specs. */
import { LocalObjectStore } from "../adapters/object-store/local.ts";
import type { S3Connection } from "../adapters/object-store/s3-connection.ts";
import { S3Requests } from "../adapters/object-store/s3-requests.ts";
import { S3ObjectStore } from "../adapters/object-store/s3-store.ts";
import { systemChance } from "../adapters/system/chance.ts";
import { systemClock } from "../adapters/system/clock.ts";
import type { ObjectStore } from "../core/ports/object-store.ts";

/** Plain data: it crosses a thread. */
export type LaneStore =
  | { readonly t: "local"; readonly root: string; readonly staging: string }
  | { readonly t: "s3"; readonly connection: S3Connection; readonly own: string };

export interface OpenedStore {
  readonly objects: ObjectStore;
  /** Takes over keys that were read again. */
  renew(store: LaneStore): void;
}

export function openLaneStore(store: LaneStore, instance: string): OpenedStore {
  if (store.t === "local") {
    const objects = new LocalObjectStore({ root: store.root, staging: store.staging, instance });
    return { objects, renew: () => {} };
  }
  const requests = new S3Requests(store.connection, { clock: systemClock, chance: systemChance });
  return {
    objects: new S3ObjectStore({ own: store.own, instance }, requests),
    renew: (renewed) => {
      if (renewed.t === "s3") requests.renew(renewed.connection.keys);
    },
  };
}
