/**
 * Code that looks after the columns of generate.ts: variables that hold a builder's arrays, their growth, nulls, and the
 * way back when a record is bad. Column k has: c its builder; v words; o offsets; d bytes; w validity bits; n and cap of a
 * list: rows of its items and for how many there is room.
 */
import type { Shape } from "./plan.ts";
import { SCALARS } from "./type-map.ts";

export interface Region {
  /** The column of the list whose items these are; -1: the records themselves. */
  readonly list: number;
  /** In the order of declaration: parents before children. */
  readonly columns: number[];
}

type Kind = "word" | "pair" | "quad" | "bool" | "bytes" | "list" | "struct";

interface Column {
  readonly kind: Kind;
  /** Expression that finds its builder. */
  readonly at: string;
  readonly nullable: boolean;
}

export class ColumnCode {
  readonly #columns: Column[] = [];
  readonly #regions: Region[] = [];

  region(list: number): Region {
    const region: Region = { list, columns: [] };
    this.#regions.push(region);
    return region;
  }

  #add(region: Region, column: Column): number {
    region.columns.push(this.#columns.length);
    return this.#columns.push(column) - 1;
  }

  list(region: Region, at: string, nullable: boolean): number {
    return this.#add(region, { kind: "list", at, nullable });
  }

  struct(region: Region, at: string, nullable: boolean): number {
    return this.#add(region, { kind: "struct", at, nullable });
  }

  leaf(region: Region, at: string, nullable: boolean, shape: Shape): number {
    return this.#add(region, { kind: kindOf(shape), at, nullable });
  }

  /** Column k of row r is unset or zero. */
  zeroAt(k: number): string {
    switch (this.#columns[k]!.kind) {
      case "word":
        return `v${k}[r]=0;`;
      case "pair":
        return `v${k}[2*r]=0;v${k}[2*r+1]=0;`;
      case "quad":
        return `v${k}.fill(0,4*r,4*r+4);`;
      case "bool":
        return `c${k}.rows=r;c${k}.push(false);`;
      case "bytes":
        return `o${k}[r+1]=o${k}[r];`;
      case "list":
        return `o${k}[r+1]=n${k};`;
      case "struct":
        return "";
    }
  }

  nullAt(k: number): string {
    return `${this.zeroAt(k)}w${k}[r>>3]&=~(1<<(r&7));`;
  }

  /** Is a key given twice in the rows `range`. */
  twice(k: number, range: string): string {
    switch (this.#columns[k]!.kind) {
      case "word":
        return `twice32(v${k},${range})`;
      case "pair":
        return `twice64(v${k},${range})`;
      case "bytes":
        return `twiceBytes(o${k},d${k},${range})`;
      default:
        return `twiceBool(c${k}.bits,${range})`;
    }
  }

  declarations(): string {
    return this.#columns
      .map((c, k) => {
        const lists = c.kind === "list" ? `,n${k}=0,cap${k}=0` : "";
        return `let c${k}=null,v${k}=null,o${k}=null,d${k}=null,w${k}=null${lists};`;
      })
      .join("\n");
  }

  #views(region: Region): string {
    const lines = region.columns.map((k) => {
      const { kind, nullable } = this.#columns[k]!;
      const bits = nullable ? `w${k}=c${k}.validity.bits;` : "";
      if (kind === "word" || kind === "pair" || kind === "quad") return `v${k}=c${k}.i32;${bits}`;
      if (kind === "bytes") return `o${k}=c${k}.offsets;d${k}=c${k}.data;${bits}`;
      return kind === "list" ? `o${k}=c${k}.offsets;${bits}` : bits;
    });
    return lines.join("");
  }

  #rows(region: Region, n: string): string {
    return region.columns.map((k) => `c${k}.rows=${n};`).join("");
  }

  /** Finds the builders, makes room for the records to come, and takes hold of the arrays. */
  binding(): string {
    const lines = this.#columns.map((c, k) => `c${k}=${c.at};`);
    for (const region of this.#regions) {
      if (region.list < 0) lines.push(this.#topReserve(region));
      else lines.push(`n${region.list}=cap${region.list}=c${region.columns[0]}.rows;`);
      lines.push(this.#views(region));
    }
    return lines.join("\n");
  }

  #topReserve(region: Region): string {
    return region.columns.map((k) => `c${k}.reserve(more);`).join("");
  }

  functions(): string {
    const lines: string[] = [];
    for (const region of this.#regions) {
      const k = region.list;
      if (k < 0) continue;
      const more = `Math.max(64,n${k})`;
      lines.push(
        `function grow${k}(){const more=${more};${this.#rows(region, `n${k}`)}` +
          `c${region.columns[0]}.reserve(more);cap${k}=n${k}+more;${this.#views(region)}}`,
      );
    }
    this.#columns.forEach((c, k) => {
      if (c.kind !== "bytes") return;
      lines.push(
        `function put${k}(f,p,n,r){const s=o${k}[r];if(s+n>d${k}.length){c${k}.rows=r;c${k}.reserveBytes(n);d${k}=c${k}.data;}` +
          `o${k}[r+1]=s+n;return copyBytes(f,p,d${k},s,n);}`,
      );
    });
    return lines.join("\n");
  }

  /** Everything of the record that failed goes: rows of items, and bits of nulls. */
  undoing(): string {
    const lines = ["function undo(){"];
    for (const region of this.#regions) {
      const k = region.list;
      // The list's own row is the first that goes in the region that it stands in.
      const from = k < 0 ? "rows" : `f${k}`;
      const to = k < 0 ? "rows" : `n${k}`;
      if (k >= 0) lines.push(`const f${k}=o${k}[${this.#rowOf(k)}];`);
      for (const c of region.columns) {
        if (this.#columns[c]!.nullable) lines.push(`setBits(w${c},${from},${to});`);
      }
    }
    for (const { list } of this.#regions) if (list >= 0) lines.push(`n${list}=f${list};`);
    lines.push("}");
    return lines.join("\n");
  }

  /** The first row that goes of the region in which column k stands. */
  #rowOf(k: number): string {
    const region = this.#regions.find((r) => r.columns.includes(k))!;
    return region.list < 0 ? "rows" : `f${region.list}`;
  }

  /** Tells the builders how many rows they have, and nulls among them. */
  ending(): string {
    const lines = ["function end(){"];
    for (const region of this.#regions) {
      const to = region.list < 0 ? "rows" : `n${region.list}`;
      for (const k of region.columns) {
        if (this.#columns[k]!.nullable) lines.push(`c${k}.validity.nulls=clearBits(w${k},0,${to});`);
      }
      lines.push(this.#rows(region, to));
    }
    lines.push("return rows;}");
    return lines.join("\n");
  }
}

function kindOf(shape: Shape): Kind {
  switch (shape.is) {
    case "timestamp":
      return "pair";
    case "duration":
      return "quad";
    case "empty":
      return "bool";
    case "enum":
    case "json":
    case "opaque":
      return "bytes";
    case "message":
      return "struct";
    default:
      break;
  }
  const type = SCALARS[shape.scalar].column;
  if (type.id === "bool") return "bool";
  if (type.id === "utf8" || type.id === "binary") return "bytes";
  return (type.id === "int" || type.id === "float") && type.bits === 64 ? "pair" : "word";
}
