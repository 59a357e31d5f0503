/**
 * Tables of FlatBuffers, read as far as Arrow's schemas need it (Schema.fbs, Message.fbs). Every offset is looked at before
 * it is followed: what leads out of the bytes is a RangeError.
 *
 *   table    int32: back to its vtable        vtable   uint16 size, uint16 size of the table, uint16 place of each field
 *   string   uint32 length, bytes             vector   uint32 length, elements
 */
const STRICT = new TextDecoder("utf-8", { fatal: true });

export class FlatTable {
  readonly #view: DataView;
  readonly #at: number;
  readonly #vtable: number;
  readonly #fields: number;

  /** `at`: of the table. */
  constructor(view: DataView, at: number) {
    this.#view = view;
    this.#at = at;
    this.#vtable = at - view.getInt32(at, true);
    this.#fields = (view.getUint16(this.#vtable, true) - 4) >> 1;
  }

  /** The table that the bytes begin with the place of. */
  static root(bytes: Uint8Array): FlatTable {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    return new FlatTable(view, view.getUint32(0, true));
  }

  /** Place of a field; 0: it has its default. */
  #place(field: number): number {
    if (field >= this.#fields) return 0;
    const from = this.#view.getUint16(this.#vtable + 4 + 2 * field, true);
    return from === 0 ? 0 : this.#at + from;
  }

  byte(field: number): number {
    const at = this.#place(field);
    return at === 0 ? 0 : this.#view.getUint8(at);
  }

  short(field: number, fallback: number): number {
    const at = this.#place(field);
    return at === 0 ? fallback : this.#view.getInt16(at, true);
  }

  int(field: number, fallback: number): number {
    const at = this.#place(field);
    return at === 0 ? fallback : this.#view.getInt32(at, true);
  }

  text(field: number): string | null {
    const at = this.#followed(field);
    if (at === 0) return null;
    const { buffer, byteOffset, byteLength } = this.#view;
    const length = this.#view.getUint32(at, true);
    if (length > byteLength - at - 4) throw new RangeError("a text that leads out of the bytes");
    return STRICT.decode(new Uint8Array(buffer, byteOffset + at + 4, length));
  }

  table(field: number): FlatTable | null {
    const at = this.#followed(field);
    return at === 0 ? null : new FlatTable(this.#view, at);
  }

  tables(field: number): FlatTable[] {
    const at = this.#followed(field);
    if (at === 0) return [];
    const length = this.#view.getUint32(at, true);
    if (length > (this.#view.byteLength - at - 4) / 4)
      throw new RangeError("a list that leads out of the bytes");
    return Array.from({ length }, (_, i) => {
      const place = at + 4 + 4 * i;
      return new FlatTable(this.#view, place + this.#view.getUint32(place, true));
    });
  }

  #followed(field: number): number {
    const at = this.#place(field);
    return at === 0 ? 0 : at + this.#view.getUint32(at, true);
  }
}
