/** Folders of Parquet beside the primary sink, decoded rows and what cannot be decoded, on one disk that can be full. */
import { join } from "node:path";
import { orphansIn } from "../orphans.ts";
import { type Place, setPoints } from "./place.ts";
import { smallDisk } from "./small-disk.ts";

const DISK_BYTES = 128 << 20;

export interface FilesPlaces {
  readonly typed: Place;
  readonly refused: Place;
}

export function filesPlaces(folder: string, rollMs: number, say: (text: string) => void): FilesPlaces {
  const disk = smallDisk(join(folder, "files"), DISK_BYTES, say);
  const place = (name: string, receives: string): Place => {
    const at = join(folder, "files", name);
    return {
      name,
      section: `type = "parquet"
receives = "${receives}"
path = "${at}"
roll_bytes = "256KiB"
roll_interval_ms = ${rollMs}
row_group_bytes = "128KiB"
hold_bytes = "4MiB"`,
      points: setPoints(name),
      troubles: {},
      judged: { kind: name, folder: at },
      orphans: () => Promise.resolve(orphansIn(at).map((f) => `${name}: ${f}`)),
      stop: () => Promise.resolve(),
    };
  };
  return {
    typed: {
      ...place("typed", "decoded"),
      troubles: disk?.troubles ?? {},
      stop: () => Promise.resolve(disk?.remove()),
    },
    refused: place("refused", "rejected"),
  };
}
