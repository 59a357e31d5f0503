/** Tables for people. Programs use `--json`. */
import { printable, type Style, styled } from "./style.ts";

export interface Column {
  readonly head: string;
  readonly align?: "left" | "right";
  /** Longer cells are cut with an ellipsis. */
  readonly max?: number;
}

export interface Cell {
  readonly text: string;
  readonly style?: Style;
}

/** Columns two spaces apart, no lines, no trailing spaces; ends with a line end. */
export function renderTable(
  columns: readonly Column[],
  rows: readonly (readonly (string | Cell)[])[],
  colour: boolean,
): string {
  const cells = rows.map((row) => columns.map((column, i) => fitted(row[i] ?? "", column)));
  const widths = columns.map((c, i) => Math.max(Bun.stringWidth(c.head), ...cells.map((r) => width(r[i]))));
  const line = (row: readonly Cell[]): string => {
    const last = row.length - 1;
    const parts = row.map((cell, i) => {
      const space = " ".repeat((widths[i] ?? 0) - width(cell));
      const text = cell.style === undefined ? cell.text : styled(cell.text, cell.style, colour);
      if (columns[i]?.align === "right") return space + text;
      return i === last ? text : text + space;
    });
    return parts.join("  ").trimEnd();
  };
  const head = line(columns.map((c): Cell => ({ text: c.head, style: "bold" })));
  return `${[head, ...cells.map(line)].join("\n")}\n`;
}

function width(cell: Cell | undefined): number {
  return cell === undefined ? 0 : Bun.stringWidth(cell.text);
}

function fitted(value: string | Cell, column: Column): Cell {
  const cell = typeof value === "string" ? { text: value } : value;
  const text = printable(cell.text);
  const max = column.max ?? 200;
  return { ...cell, text: Bun.stringWidth(text) <= max ? text : `${cut(text, max - 1)}…` };
}

/** At most `columns` wide; cuts between code points. */
function cut(text: string, columns: number): string {
  let out = "";
  let used = 0;
  for (const c of text) {
    used += Bun.stringWidth(c);
    if (used > columns) break;
    out += c;
  }
  return out;
}
