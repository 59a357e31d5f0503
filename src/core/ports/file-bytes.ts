/** Bytes of one file wherever it lies. */

/** Where a file lies: a path of this machine, or an address with the revision under which it was found. */
export interface FilePlace {
  readonly path: string;
  /** Null: a file of this machine. */
  readonly revision: string | null;
  readonly bytes: number;
}

export interface FileBytes {
  readonly size: number;
  /** [from, to), which lies within the file; throws files.changed where the file does not have them any more. */
  read(from: number, to: number): Promise<Uint8Array>;
  close(): void;
}

export type OpenFile = (place: FilePlace) => FileBytes;
