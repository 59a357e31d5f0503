// Goal: tables line up and cannot be abused by their content. Method: exact text.
import { expect, test } from "bun:test";
import { wantsColour } from "../../src/commands/cli.ts";
import { printable, styled } from "../../src/commands/style.ts";
import { renderTable } from "../../src/commands/table.ts";

test("columns line up, numbers to the right, nothing trails", () => {
  const columns = [{ head: "NAME" }, { head: "ROWS", align: "right" }, { head: "WHERE" }] as const;
  const rows = [
    ["a", "12345", "x"],
    ["long name", "1", ""],
    ["日本", "10", "wide"],
  ];
  expect(renderTable(columns, rows, false)).toBe(
    "NAME        ROWS  WHERE\na          12345  x\nlong name      1\n日本          10  wide\n",
  );
});

test("colour changes no width", () => {
  const rows = [[{ text: "a", style: "red" } as const, "b"]];
  const columns = [{ head: "LONG" }, { head: "B" }];
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colour is taken off
  const bare = renderTable(columns, rows, true).replace(/\u001b\[\d+m/g, "");
  expect(bare).toBe(renderTable(columns, rows, false));
  expect(renderTable(columns, rows, true)).toContain(styled("a", "red", true));
});

test("long cells are cut to their column, missing ones are empty", () => {
  expect(renderTable([{ head: "A", max: 4 }, { head: "B" }], [["abcdefgh"], ["日本語", "x"]], false)).toBe(
    "A     B\nabc…\n日…   x\n",
  );
});

test("control characters are shown, not obeyed", () => {
  expect(printable("a\u001b[2J\n\t\r\u0000\u202e\u009b")).toBe("a\\u001b[2J\\n\\t\\r\\u0000\\u202e\\u009b");
  expect(renderTable([{ head: "A" }], [["x\ny"]], false)).toBe("A\nx\\ny\n");
});

test.each([
  [true, {}, true],
  [false, {}, false],
  [true, { NO_COLOR: "1" }, false],
  [true, { NO_COLOR: "0" }, false],
  [true, { NO_COLOR: "" }, true],
  [true, { TERM: "dumb" }, false],
] as const)("terminal %p with %j has colour: %p", (terminal, environment, expected) => {
  expect(wantsColour(terminal, environment)).toBe(expected);
});
