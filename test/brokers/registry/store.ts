/** What a registry keeps: schemas by id and GUID, versions by subject. One id per distinct schema, as in Confluent's. */
import { createHash } from "node:crypto";

export interface Reference {
  readonly name: string;
  readonly subject: string;
  readonly version: number;
}

export interface Stored {
  readonly schema: string;
  readonly schemaType: string;
  readonly references: readonly Reference[];
}

export interface Version extends Stored {
  readonly id: number;
  readonly guid: string;
  readonly subject: string;
  readonly version: number;
}

export class SchemaStore {
  readonly #ids = new Map<string, number>();
  readonly #byId = new Map<number, Stored>();
  readonly #subjects = new Map<string, Version[]>();
  /** Why a schema may not follow the versions of its subject; null: it may. */
  incompatible: (next: Stored, before: readonly Version[]) => string | null = () => null;

  add(subject: string, stored: Stored): Version | string {
    const versions = this.#subjects.get(subject) ?? [];
    const same = versions.find((v) => keyOf(v) === keyOf(stored));
    if (same !== undefined) return same;
    const why = this.incompatible(stored, versions);
    if (why !== null) return why;
    const key = keyOf(stored);
    const id = this.#ids.get(key) ?? this.#ids.size + 1;
    this.#ids.set(key, id);
    this.#byId.set(id, stored);
    const version = { ...stored, id, guid: guidOf(key), subject, version: versions.length + 1 };
    this.#subjects.set(subject, [...versions, version]);
    return version;
  }

  byId(id: number): (Stored & { readonly guid: string }) | null {
    const stored = this.#byId.get(id);
    return stored === undefined ? null : { ...stored, guid: guidOf(keyOf(stored)) };
  }

  byGuid(guid: string): Stored | null {
    for (const stored of this.#byId.values()) if (guidOf(keyOf(stored)) === guid) return stored;
    return null;
  }

  versions(subject: string): readonly Version[] | null {
    return this.#subjects.get(subject) ?? null;
  }

  find(subject: string, stored: Stored): Version | null {
    return this.#subjects.get(subject)?.find((v) => keyOf(v) === keyOf(stored)) ?? null;
  }

  /** Puts a version in place as it is, whatever it says. */
  force(version: Version): void {
    const versions = (this.#subjects.get(version.subject) ?? []).filter((v) => v.version !== version.version);
    this.#subjects.set(
      version.subject,
      [...versions, version].sort((a, b) => a.version - b.version),
    );
    this.#byId.set(version.id, version);
  }
}

function keyOf({ schema, schemaType, references }: Stored): string {
  return JSON.stringify([schemaType, schema, references.map((r) => [r.name, r.subject, r.version])]);
}

function guidOf(key: string): string {
  const hex = createHash("md5").update(key).digest("hex");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
