/**
 * Code for one plan: payloads straight into column builders, a function a message, no object a record. A field's value is
 * written into its row as it comes, in any order, so that of several the last stands; what stays unset is filled in when
 * the message ends. Rows of messages in messages are those of the record; rows of a list's items count for themselves:
 * a *region* is the columns that share a row number.
 *
 * What it does not do itself (a message given twice, which merges; a oneof set twice; a key given twice; anything wrong) it
 * leaves to the reader of Values by throwing ODD.
 *
 * Only numbers go into the code: no name of a schema does.
 */
import { ScalarType } from "@bufbuild/protobuf";
import { ColumnCode, type Region } from "./column-code.ts";
import type { FieldPlan, MessagePlan, Shape } from "./plan.ts";
import { SCALARS } from "./type-map.ts";

const BITS = 30;

interface Slot {
  readonly field: FieldPlan;
  /** Column, or that of the list; -1: a flattened message, which has none. */
  readonly column: number;
  /** Of the message's fields of label "one": which bit says that it was seen. */
  readonly bit: number;
  /** Name suffix of the functions of its message. */
  readonly message: number;
  readonly items: Region | null;
}

const tagOf = (number: number, wire: number) => (number << 3) | wire | 0;
const LENGTH = "let n=b[p++];if(n>127){p=lengthAt(b,p-1);n=out[0];}if(n>e-p)throw ODD;";

class Generator {
  readonly columns = new ColumnCode();
  readonly functions: string[] = [];
  readonly enums: Shape[] = [];
  readonly jsons: { readonly shape: Shape; readonly depth: number }[] = [];
  #messages = 0;

  /** Declares the columns of a message, children of `at`, and its functions; gives their number. */
  message(plan: MessagePlan, region: Region, at: (i: number) => string, nullable: boolean): number {
    const id = this.#messages++;
    const slots: Slot[] = [];
    let children = 0;
    const place = () => at(children++);
    this.#slots(plan, region, place, nullable, slots);
    this.#emit(id, slots, plan.depth);
    return id;
  }

  /** A flattened message declares its columns among its parent's, so it takes the parent's places. */
  #slots(plan: MessagePlan, region: Region, place: () => string, within: boolean, slots: Slot[]): void {
    let bit = 0;
    for (const field of plan.fields) {
      const nullable = within || (field.label === "one" && field.presence === "explicit");
      const bits = field.label === "one" ? bit++ : -1;
      if (field.label !== "one") {
        const column = this.columns.list(region, place(), within);
        const items = this.columns.region(column);
        const message = this.#items(field, items, plan.depth);
        slots.push({ field, column, bit: bits, message, items });
      } else if (field.flat && field.shape.is === "message") {
        const below = within || field.presence !== "required";
        const id = this.#messages++;
        const inner: Slot[] = [];
        this.#slots(field.shape.plan, region, place, below, inner);
        this.#emit(id, inner, field.shape.plan.depth);
        slots.push({ field, column: -1, bit: bits, message: id, items: null });
      } else {
        const { column, message } = this.#value(field.shape, region, place(), nullable);
        slots.push({ field, column, bit: bits, message, items: null });
      }
    }
  }

  #items(field: FieldPlan, items: Region, depth: number): number {
    const child = `c${items.list}.child`;
    if (field.label === "list") {
      return this.#value(field.shape, items, child, false).message;
    }
    const entry = this.columns.struct(items, child, false);
    const key = this.#value(
      { is: "scalar", scalar: field.key! },
      items,
      `c${entry}.children[0]`,
      false,
    ).column;
    const value = this.#value(field.shape, items, `c${entry}.children[1]`, false);
    return this.#entry(field, key, value, depth);
  }

  #value(shape: Shape, region: Region, at: string, nullable: boolean): { column: number; message: number } {
    if (shape.is !== "message") {
      return { column: this.columns.leaf(region, at, nullable, shape), message: -1 };
    }
    const column = this.columns.struct(region, at, nullable);
    return {
      column,
      message: this.message(shape.plan, region, (i) => `c${column}.children[${i}]`, nullable),
    };
  }

  /** The function m(p, e, r) that reads a message into row r, and z(r) that makes all its columns null there. */
  #emit(id: number, slots: readonly Slot[], depth: number): void {
    const masks = Math.ceil(slots.filter((s) => s.bit >= 0).length / BITS);
    const oneofs = new Set(slots.map((s) => s.field.oneof).filter((o) => o >= 0));
    const lines = [`function m${id}(p,e,r){`];
    for (let i = 0; i < masks; i++) lines.push(`let s${i}=0;`);
    for (const o of oneofs) lines.push(`let q${o}=0;`);
    lines.push("while(p<e){let t=b[p++];if(t>127){p=tagAt(b,p-1);t=out[0];}switch(t){");
    for (const slot of slots) lines.push(...this.#cases(slot, depth));
    lines.push(`default:p=skipValue(b,p,e,t,${depth});}}if(p!==e)throw ODD;`);
    for (let i = 0; i < masks; i++) lines.push(...this.#unset(i, slots));
    for (const slot of slots) if (slot.items !== null) lines.push(...this.#listEnd(slot, slot.items));
    lines.push("}");
    const nulls = slots.map((s) => (s.column < 0 ? `z${s.message}(r);` : this.#nullAt(s)));
    lines.push(`function z${id}(r){${nulls.join("")}}`);
    this.functions.push(lines.join("\n"));
  }

  #nullAt(slot: Slot): string {
    const inner = slot.items === null && slot.message >= 0 ? `z${slot.message}(r);` : "";
    return inner + this.columns.nullAt(slot.column);
  }

  #unset(mask: number, slots: readonly Slot[]): string[] {
    const here = slots.filter((s) => s.bit >= 0 && Math.floor(s.bit / BITS) === mask);
    const all = here.reduce((bits, s) => bits | (1 << (s.bit % BITS)), 0);
    const lines = [`if(s${mask}!==${all}){`];
    for (const s of here) {
      lines.push(`if((s${mask}&${1 << (s.bit % BITS)})===0){${this.#absent(s)}}`);
    }
    lines.push("}");
    return lines;
  }

  #absent(s: Slot): string {
    if (s.field.presence === "required") return "throw ODD;";
    if (s.column < 0) return `z${s.message}(r);`;
    if (s.field.presence === "explicit") return this.#nullAt(s);
    return s.field.shape.is === "enum"
      ? this.#enum(s.field.shape, s.column, "r", "0")
      : this.columns.zeroAt(s.column);
  }

  #listEnd({ column, field }: Slot, items: Region): string[] {
    const lines = [`o${column}[r+1]=n${column};`];
    if (field.label === "map") {
      const key = items.columns[1]!;
      const range = `o${column}[r],n${column}`;
      lines.push(`if(n${column}-o${column}[r]>1&&${this.columns.twice(key, range)})throw ODD;`);
    }
    return lines;
  }

  #cases(slot: Slot, depth: number): string[] {
    const { field, column } = slot;
    const { shape, number } = field;
    if (slot.items !== null) return this.#listCases(slot, slot.items, depth);
    const mark = `s${Math.floor(slot.bit / BITS)}|=${1 << (slot.bit % BITS)};`;
    const lines: string[] = [];
    if (field.oneof >= 0) {
      const q = `q${field.oneof}`;
      lines.push(`if(${q}!==0&&${q}!==${number})throw ODD;${q}=${number};`);
    }
    if (shape.is === "scalar" || shape.is === "enum") {
      return [
        `case ${tagOf(number, wireOf(shape))}:{`,
        ...lines,
        this.#read(shape, column, "r"),
        mark,
        "break;}",
      ];
    }
    const mask = `s${Math.floor(slot.bit / BITS)}`;
    const twice = `if((${mask}&${1 << (slot.bit % BITS)})!==0)throw ODD;`;
    return this.#messageCase(field, depth, [
      ...lines,
      twice,
      this.#content(shape, column, slot.message, "r", depth),
      mark,
    ]);
  }

  /** A message behind a length or between group tags: its content is [p, n) for `lines`. */
  #messageCase(field: FieldPlan, depth: number, lines: readonly string[]): string[] {
    const { number } = field;
    if (!field.delimited) {
      return [`case ${tagOf(number, 2)}:{${LENGTH}n+=p;`, ...lines, "p=n;break;}"];
    }
    return [
      `case ${tagOf(number, 3)}:{const n=groupEnd(b,p,e,${number},${depth + 1}),g=out[0];`,
      ...lines,
      "p=g;break;}",
    ];
  }

  #listCases(slot: Slot, items: Region, depth: number): string[] {
    const { field, column } = slot;
    const { shape, number } = field;
    const row = `n${column}`;
    const room = `if((cells-=${field.cells})<0)throw ODD;if(${row}===cap${column})grow${column}();`;
    if (field.label === "map") {
      return [
        `case ${tagOf(number, 2)}:{${LENGTH}${room}m${slot.message}(p,p+n,${row});${row}++;p+=n;break;}`,
      ];
    }
    const first = items.columns[0]!;
    if (shape.is === "scalar" || shape.is === "enum") {
      const wire = wireOf(shape);
      const one = `${room}${this.#read(shape, first, row)}${row}++;`;
      const lines = [`case ${tagOf(number, wire)}:{${one}break;}`];
      if (wire !== 2) {
        lines.push(`case ${tagOf(number, 2)}:{${LENGTH}n+=p;while(p<n){${one}}if(p!==n)throw ODD;break;}`);
      }
      return lines;
    }
    const content = this.#content(shape, first, slot.message, row, depth);
    return this.#messageCase(field, depth, [room, content, `${row}++;`]);
  }

  /** Reads message content [p, n) into a row. */
  #content(shape: Shape, k: number, message: number, row: string, depth: number): string {
    switch (shape.is) {
      case "message":
        return `m${message}(p,n,${row});`;
      case "timestamp":
        return `instant(b,p,n,${depth + 1});v${k}[2*${row}]=out[0];v${k}[2*${row}+1]=out[1];`;
      case "duration":
        return `lapse(b,p,n,${depth + 1});v${k}.set(quad,4*${row});`;
      case "empty":
        return `emptyMessage(b,p,n,${depth + 1});c${k}.rows=${row};c${k}.push(true);`;
      case "opaque":
        return `emptyMessage(b,p,n,${depth + 1});put${k}(b,p,n-p,${row});`;
      case "json":
        this.jsons.push({ shape, depth: depth + 1 });
        return `{const j=J[${this.jsons.length - 1}](b,p,n);put${k}(j,0,j.length,${row});}`;
      case "wrapper":
        return this.#wrapper(shape.scalar, k, row, depth);
      default:
        throw new Error("a scalar has no content");
    }
  }

  #wrapper(scalar: ScalarType, k: number, row: string, depth: number): string {
    const shape: Shape = { is: "scalar", scalar };
    this.functions.push(
      `function u${k}(p,e,r){${this.columns.zeroAt(k)}while(p<e){p=tagAt(b,p);const t=out[0];` +
        `if(t===${tagOf(1, wireOf(shape))}){${this.#read(shape, k, "r")}}else p=skipValue(b,p,e,t,${depth + 1});}` +
        "if(p!==e)throw ODD;}",
    );
    return `u${k}(p,n,${row});`;
  }

  /** The entry of a map: a key and a value, either of which may be left out and is then its zero. */
  #entry(
    field: FieldPlan,
    key: number,
    value: { readonly column: number; readonly message: number },
    depth: number,
  ): number {
    const id = this.#messages++;
    const keyShape: Shape = { is: "scalar", scalar: field.key! };
    const lines = [`function m${id}(p,e,r){let k=0,s=0;while(p<e){p=tagAt(b,p);const t=out[0];switch(t){`];
    lines.push(`case ${tagOf(1, wireOf(keyShape))}:{${this.#read(keyShape, key, "r")}k=1;break;}`);
    const { shape } = field;
    const simple = shape.is === "scalar" || shape.is === "enum";
    const content = simple ? "" : this.#content(shape, value.column, value.message, "r", depth);
    if (simple) {
      lines.push(`case ${tagOf(2, wireOf(shape))}:{${this.#read(shape, value.column, "r")}s=1;break;}`);
    } else {
      lines.push(`case ${tagOf(2, 2)}:{if(s)throw ODD;${LENGTH}n+=p;${content}p=n;s=1;break;}`);
    }
    lines.push(`default:p=skipValue(b,p,e,t,${depth});}}if(p!==e)throw ODD;`);
    lines.push(`if(!k){${this.columns.zeroAt(key)}}`);
    const none = simple
      ? shape.is === "enum"
        ? this.#enum(shape, value.column, "r", "0")
        : this.columns.zeroAt(value.column)
      : `const n=p;${content}`;
    lines.push(`if(!s){${none}}}`);
    this.functions.push(lines.join("\n"));
    return id;
  }

  #enum(shape: Shape, k: number, row: string, number: string): string {
    this.enums.push(shape);
    return `{const j=E[${this.enums.length - 1}](${number});put${k}(j,0,j.length,${row});}`;
  }

  /** Reads a scalar or enum at p into a row. */
  #read(shape: Shape, k: number, row: string): string {
    if (shape.is === "enum") return `p=varint64(b,p);${this.#enum(shape, k, row, "out[0]")}`;
    if (shape.is !== "scalar") throw new Error("not a scalar");
    const word = (i: number) => `b[p+${i}]|b[p+${i + 1}]<<8|b[p+${i + 2}]<<16|b[p+${i + 3}]<<24`;
    switch (shape.scalar) {
      case ScalarType.INT32:
      case ScalarType.UINT32:
        return `{const x=b[p];if(x<128){p++;v${k}[${row}]=x;}else{p=varint64(b,p);v${k}[${row}]=out[0];}}`;
      case ScalarType.SINT32:
        return `{p=varint64(b,p);const x=out[0];v${k}[${row}]=(x>>>1)^-(x&1);}`;
      case ScalarType.INT64:
      case ScalarType.UINT64:
        return `p=varint64(b,p);v${k}[2*${row}]=out[0];v${k}[2*${row}+1]=out[1];`;
      case ScalarType.SINT64:
        return (
          `{p=varint64(b,p);const x=out[0],y=out[1],s=-(x&1);` +
          `v${k}[2*${row}]=((x>>>1)|(y<<31))^s;v${k}[2*${row}+1]=(y>>>1)^s;}`
        );
      case ScalarType.BOOL:
        return `p=varint64(b,p);c${k}.rows=${row};c${k}.push((out[0]|out[1])!==0);`;
      case ScalarType.FIXED32:
      case ScalarType.SFIXED32:
      case ScalarType.FLOAT:
        return `v${k}[${row}]=${word(0)};p+=4;`;
      case ScalarType.FIXED64:
      case ScalarType.SFIXED64:
      case ScalarType.DOUBLE:
        return `v${k}[2*${row}]=${word(0)};v${k}[2*${row}+1]=${word(4)};p+=8;`;
      case ScalarType.STRING:
        return `{${LENGTH}if(put${k}(b,p,n,${row})>127&&!isUtf8(b,p,p+n))throw ODD;p+=n;}`;
      case ScalarType.BYTES:
        return `{${LENGTH}put${k}(b,p,n,${row});p+=n;}`;
    }
  }
}

function wireOf(shape: Shape): number {
  return shape.is === "scalar" ? SCALARS[shape.scalar].wire : 0;
}

export interface Generated {
  /** Body of a function of (names of RUNTIME..., E, J) that gives { bind, run, undo, end }. */
  readonly code: string;
  readonly enums: readonly Shape[];
  readonly jsons: readonly { readonly shape: Shape; readonly depth: number }[];
}

/** Cells that a payload may have in lists: what it takes to hold them is bounded by its length. */
const CELLS = "1000000+8*(ends[i]-starts[i])";

export function generate(plan: MessagePlan): Generated {
  const g = new Generator();
  const top = g.columns.region(-1);
  g.message(plan, top, (i) => `B[${i}]`, false);
  const code = [
    '"use strict";let b=null,cells=0,at=0,rows=0;',
    g.columns.declarations(),
    g.functions.join("\n"),
    g.columns.functions(),
    "function bind(B,row,more){rows=row;",
    g.columns.binding(),
    "}",
    // Payloads from index `from` on; stops at one that is odd and gives its index, or `count`.
    "function run(bytes,starts,ends,from,count){b=bytes;at=from;try{",
    `for(let i=from;i<count;i++){at=i;cells=${CELLS};m0(starts[i],ends[i],rows);rows++;}`,
    "return count;}catch(x){if(x!==ODD)throw x;undo();return at;}}",
    g.columns.undoing(),
    g.columns.ending(),
    "return{bind,run,end};",
  ].join("\n");
  return { code, enums: g.enums, jsons: g.jsons };
}
