/**
 * Goal: XML documents become the values that they say, whatever prefixes, sections and references they are written with, and
 * what could be lost or read in two ways is refused with its place. Method: drawn values are written in drawn ways and read
 * again; documents that are no XML, or no record of the schema, are refused one by one.
 */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import fc from "fast-check";
import { DecodeError, type DecodeFault } from "../../../../src/core/codecs/record-codec.ts";
import { compileXml, XmlRecords } from "../../../../src/core/codecs/xml/compile.ts";
import type { XmlRules } from "../../../../src/core/codecs/xml/record-cells.ts";
import { builderOf } from "../../../../src/core/types/column-builder.ts";
import type { Value } from "../../../../src/core/types/value.ts";
import { cellOf, schema } from "../table.ts";

const utf8 = new TextEncoder();

interface Decoded {
  readonly rows: readonly (readonly unknown[])[];
  readonly faults: readonly DecodeFault[];
}

function read(
  text: string,
  documents: readonly (string | Uint8Array)[],
  rules: Partial<XmlRules> & { readonly maxBytes?: number } = {},
): Decoded {
  const { fields } = schema(text);
  const options = {
    unknown: "reject",
    prefixes: new Map(),
    reserved: "_twg_",
    maxBytes: 1 << 20,
    maxDepth: 1000,
    isUtf8,
  } as const;
  const decoder = new XmlRecords(fields, { ...options, ...rules });
  const parts = documents.map((d) => (typeof d === "string" ? utf8.encode(d) : d));
  const ends = new Int32Array(parts.length);
  let at = 0;
  for (const [i, p] of parts.entries()) {
    at += p.length;
    ends[i] = at;
  }
  const starts = ends.map((end, i) => end - parts[i]!.length);
  const columns = fields.map((f) => builderOf(f.type));
  const faults: DecodeFault[] = [];
  const payloads = { bytes: Uint8Array.from(Buffer.concat(parts)), starts, ends, count: parts.length };
  const rows = decoder.decode(payloads, columns, (f) => faults.push(f));
  const done = columns.map((c) => c.finish());
  for (const c of done) expect(c.length).toBe(rows);
  return { rows: Array.from({ length: rows }, (_, r) => done.map((c) => cellOf(c, r))), faults };
}

const TABLE =
  "@id int64;name string;note string;at timestamptz[ms];item list<struct<@sku string, qty int32, #text string>>;to struct<city string, zip string>";
const ITEMS = TABLE.replaceAll("@sku", '"@sku"').replaceAll("#text", '"#text"');

const one = (
  table: string,
  document: string | Uint8Array,
  rules: Partial<XmlRules> & { readonly maxBytes?: number } = {},
): string =>
  read(table, [document], rules)
    .faults.map((f) => `${f.code} ${f.path}: ${f.reason}`)
    .join();

test("elements, attributes, lists of one and of many, text of the element itself", () => {
  const { rows, faults } = read(ITEMS, [
    '<order id="7"><name>A &amp; B</name><item sku="x">lamp<qty>2</qty></item><item sku="y"><qty> 3 </qty></item><to><city>Köln</city></to></order>',
    "<order id='8'><item sku='z'/><at>2026-01-01T00:00:00.5Z</at><name/></order>",
    "<order/>",
  ]);
  expect(faults).toEqual([]);
  expect(rows).toEqual([
    [
      7n,
      "A & B",
      null,
      null,
      [
        { "@sku": "x", qty: 2, "#text": "lamp" },
        { "@sku": "y", qty: 3, "#text": "" },
      ],
      { city: "Köln", zip: null },
    ],
    [8n, "", null, 1767225600500n, [{ "@sku": "z", qty: null, "#text": "" }], null],
    [null, null, null, null, [], null],
  ]);
});

/** Text written with references and sections, as one likes. */
const written = fc
  .array(
    fc.tuple(
      fc.constantFrom("a", "Ü", "€", "😀", "&", "<", ">", "]", '"', "'", "\n", " ", "x y"),
      fc.constantFrom("plain", "decimal", "hex", "cdata", "comment"),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => ({
    value: pieces.map(([c]) => c).join(""),
    xml: pieces
      .map(([c, way]) => {
        const code = c.length === 1 || c === "😀" ? c.codePointAt(0)! : null;
        if (way === "cdata") return `<![CDATA[${c}]]>`;
        if (way === "decimal" && code !== null) return `&#000000${code};`;
        if (way === "hex" && code !== null) return `&#x000${code.toString(16)};`;
        const plain = c.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
        return way === "comment" ? `<!-- - ${plain} -->${plain}<?pi x?>` : plain;
      })
      .join(""),
  }));

test("text is what it says, however it is written; a prefix is as good as another", () => {
  const orders = fc.array(
    fc.record({
      id: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      name: written,
      items: fc.array(fc.record({ sku: written, qty: fc.integer() }), { maxLength: 4 }),
      prefix: fc.constantFrom("", "p", "q-1"),
      declaration: fc.boolean(),
    }),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(orders, (records) => {
      const documents = records.map(({ id, name, items, prefix, declaration }) => {
        const p = prefix === "" ? "" : `${prefix}:`;
        const inner = items.map(
          (i) => `<${p}item>\n<${p}qty>${i.qty}</${p}qty><${p}sku>${i.sku.xml}</${p}sku></${p}item>`,
        );
        const space = `xmlns${prefix === "" ? "" : `:${prefix}`}='urn:o'`;
        return `${declaration ? '<?xml version="1.0" encoding="UTF-8"?>\n' : ""}<${p}order ${space} id="${id}">${inner.join("")}<${p}name>${name.xml}</${p}name></${p}order >`;
      });
      const prefixes = new Map([["urn:o", "o"]]);
      const table = '@id int64;o:name string;o:item list<struct<"o:sku" string, "o:qty" int32>>';
      const { rows, faults } = read(table, documents, { prefixes });
      expect(faults).toEqual([]);
      expect(rows).toEqual(
        records.map((r) => [
          r.id,
          r.name.value,
          r.items.map((i) => ({ "o:sku": i.sku.value, "o:qty": i.qty })),
        ]),
      );
    }),
    { numRuns: 80 },
  );
});

test("the same name in another namespace is another name", () => {
  const prefixes = new Map([["urn:a", "a"]]);
  const both = '<r xmlns:x="urn:a" xmlns:y="urn:b"><x:v>1</x:v><y:v>2</y:v></r>';
  expect(read("a:v int32;v int32", [both], { prefixes }).rows).toEqual([[1, 2]]);
  expect(one("v int32", '<r xmlns:x="urn:c" xmlns:y="urn:b"><x:v>1</x:v><y:v>2</y:v></r>')).toStartWith(
    "decode.duplicate_key v: it is of two namespaces",
  );
  expect(one("v list<int32>", '<r xmlns:x="urn:c"><x:v>1</x:v><v>2</v></r>')).toStartWith(
    "decode.duplicate_key",
  );
});

test("line ends and blanks are those of XML; nil is null", () => {
  const rows = read("a string;@b string;c int32", [
    "<r b='x\r\n\ty&#10;'><a>1\r\n2\r3</a></r>",
    '<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a i:nil="true"/><c i:nil=" 1 "></c></r>',
    "<r><c>\n 5 <!-- five --></c></r>",
  ]).rows;
  expect(rows).toEqual([
    ["1\n2\n3", "x  y\n", null],
    [null, null, null],
    [null, null, 5],
  ]);
});

test("names of any script", () => {
  const document = "<日 xmlns:é='urn:é'><é:naïve·1>a</é:naïve·1></日>";
  expect(read("naïve·1 string", [document])).toEqual({ rows: [["a"]], faults: [] });
});

test("an element that is nil loses no attribute", () => {
  const nil = '<r xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><to i:nil="true" zip="1"/></r>';
  const table = 'to struct<"@zip" string, city string>;a string';
  expect(one(table, nil)).toBe('decode.unknown_field to: it is nil, and has the attribute "zip"');
  expect(read(table, [nil], { unknown: "ignore" }).rows).toEqual([[null, null]]);
});

test("encodings by mark and by declaration", () => {
  const utf16 = (text: string, little: boolean) => {
    const bytes = Buffer.from(`\ufeff${text}`, "utf16le");
    return new Uint8Array(little ? bytes : bytes.swap16());
  };
  const latin = (encoding: string) =>
    Uint8Array.from(
      Buffer.from(`<?xml version="1.0" encoding="${encoding}"?><r><a>\xe4\x80</a></r>`, "latin1"),
    );
  const { rows, faults } = read("a string", [
    utf16("<r><a>ä€</a></r>", true),
    utf16("<r><a>ä€</a></r>", false),
    Uint8Array.of(0xef, 0xbb, 0xbf, ...utf8.encode("<r><a>ä</a></r>")),
    latin("ISO-8859-1"),
    latin("windows-1252"),
    latin("UTF-8"),
    latin("EBCDIC-1"),
    utf16("<r><a>", true).subarray(0, 7),
  ]);
  expect(rows).toEqual([["ä€"], ["ä€"], ["ä"], ["ä\x80"], ["ä€"]]);
  expect(faults.map((f) => [f.row, f.code]).toSorted()).toEqual([
    [5, "decode.encoding"],
    [6, "decode.encoding"],
    [7, "decode.encoding"],
  ]);
});

test("what a document declares agrees with its mark and its bytes", () => {
  const document = (encoding: string) => `<?xml version="1.0" encoding="${encoding}"?><r><a>ä</a></r>`;
  const utf16 = (encoding: string) =>
    new Uint8Array(Buffer.from(`\ufeff${document(encoding)}`, "utf16le").swap16());
  const bom = (encoding: string) => utf8.encode(`\ufeff${document(encoding)}`);
  const agreeing = [
    utf16("UTF-16"),
    utf16("utf-16BE"),
    bom("UTF-8"),
    bom("utf8"),
    utf8.encode(document("utf-8")),
    utf8.encode(document("UTF8")),
  ];
  expect(read("a string", agreeing)).toMatchObject({ rows: agreeing.map(() => ["ä"]), faults: [] });
  // The last two: UTF-8 that is named something smaller, and nothing at all.
  const others = ["UTF-16LE", "UTF16", "UTF-8", "ISO-8859-1", "x"].map(utf16);
  const marked = ["UTF-16", "ISO-8859-1", "US-ASCII", "x"].map(bom);
  const bad = [...others, ...marked, utf8.encode(document("US-ASCII")), utf8.encode(document("x"))];
  // A processing instruction of another name declares nothing.
  bad.push(Uint8Array.from(Buffer.from('<?xmll encoding="ISO-8859-1"?><r><a>\xe4</a></r>', "latin1")));
  const { rows, faults } = read("a string", bad);
  expect(rows).toEqual([]);
  expect(faults.map((f) => f.code)).toEqual(bad.map(() => "decode.encoding"));
});

test("a Value is the same record, and what it leaves out is not null", () => {
  const { fields } = schema("a string;b list<int32>;c int32");
  const options = {
    unknown: "reject",
    prefixes: new Map(),
    reserved: null,
    maxBytes: 100,
    maxDepth: 1000,
    isUtf8,
  } as const;
  const decoder = new XmlRecords(fields, options);
  const bytes = utf8.encode("<r><b>1</b><c/></r>");
  expect(decoder.value(bytes, 0, bytes.length)).toEqual({
    kind: "record",
    fields: [
      { name: "b", value: { kind: "list", items: [{ kind: "int", value: 1 }] } },
      { name: "c", value: { kind: "null" } },
    ],
  });
  expect(() => decoder.value(bytes, 1, bytes.length)).toThrow("text outside of the element");
});

test("both ways read the same of drawn documents, good and bad", () => {
  const { fields } = schema(ITEMS);
  const options = {
    unknown: "reject",
    prefixes: new Map(),
    reserved: null,
    maxBytes: 1000,
    maxDepth: 9,
    isUtf8,
  } as const;
  const piece = fc.oneof(
    fc.constantFrom(
      "<name/>",
      "<at>2026-01-01T00:00:00Z</at>",
      "<at>no</at>",
      "<to><city>x</city></to>",
      "<to/>",
      "<x/>",
      "&#9;",
      "]]>",
    ),
    fc
      .tuple(fc.integer(), written)
      .map(([q, w]) => `<item sku="s"><qty>${q}</qty></item><note>${w.xml}</note>`),
  );
  const drawn = fc.array(
    fc.tuple(fc.array(piece, { maxLength: 3 }), fc.constantFrom("", ' id="5"', ' id="x"')),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(drawn, (all) => {
      const documents = all.map(([parts, attributes]) => `<r${attributes}>${parts.join("")}</r>`);
      const { rows, faults } = read(ITEMS, documents);
      const decoder = new XmlRecords(fields, options);
      const bad = new Map(faults.map((f) => [f.row, `${f.code} ${f.path} ${f.reason}`]));
      let row = 0;
      for (const [i, text] of documents.entries()) {
        const bytes = utf8.encode(text);
        const one = () => decoder.value(bytes, 0, bytes.length);
        if (bad.has(i)) {
          const thrown = caught(one);
          expect(`${thrown.code} ${thrown.path} ${thrown.message}`).toBe(bad.get(i)!);
          continue;
        }
        const value = one();
        if (value.kind !== "record") throw new Error(value.kind);
        const named = new Map(value.fields.map((f) => [f.name, f.value]));
        // What the record left out is no field, and null as a cell.
        expect(fields.map((f) => plain(named.get(f.name)))).toEqual(rows[row++]!.map((c) => c ?? null));
      }
      expect(row).toBe(rows.length);
    }),
    { numRuns: 60 },
  );
});

function caught(run: () => unknown): DecodeError {
  try {
    run();
  } catch (e) {
    if (e instanceof DecodeError) return e;
    throw e;
  }
  throw new Error("it was read");
}

/** A Value as `cellOf` shows cells of these types. */
function plain(value: Value | undefined, within: readonly string[] = []): unknown {
  if (value === undefined || value.kind === "null") return null;
  if (value.kind === "list") return value.items.map((v) => plain(v, ["@sku", "qty", "#text"]));
  if (value.kind === "record") {
    const names = within.length > 0 ? within : ["city", "zip"];
    const all = new Map(value.fields.map((f) => [f.name, plain(f.value)]));
    return Object.fromEntries(names.map((n) => [n, all.get(n) ?? null]));
  }
  return "value" in value ? value.value : value;
}

test("a table's schema compiles: sources name elements, namespaces are of its prefixes", () => {
  const options = { unknown: "reject", reserved: "_twg_", maxBytes: 1000, maxDepth: 1000, isUtf8 } as const;
  const compiled = (document: object) => compileXml({ text: JSON.stringify(document) }, options);
  const decoder = compiled({
    namespaces: { o: "urn:o" },
    columns: [
      { name: "id", type: "int64", source: "@id" },
      { name: "name", type: "string", source: "o:name" },
    ],
  });
  const bytes = utf8.encode('<r id="7" xmlns="urn:o"><name>x</name></r>');
  expect(decoder.value(bytes, 0, bytes.length)).toEqual({
    kind: "record",
    fields: [
      { name: "id", value: { kind: "long", value: 7n } },
      { name: "name", value: { kind: "string", value: "x" } },
    ],
  });
  expect(() => compiled({})).toThrow('an object with a list "columns"');
  expect(() => compiled({ columns: [{ name: "_twg_a", type: "int" }] })).toThrow("are reserved");
  expect(() => compiled({ namespaces: { o: 1 }, columns: [{ name: "a", type: "int" }] })).toThrow(
    "a prefix and its URI",
  );
  expect(() => compiled({ namespaces: [], columns: [{ name: "a", type: "int" }] })).toThrow(
    "an object of prefixes",
  );
});

describe("refused", () => {
  test("what is no XML", () => {
    for (const [document, why] of [
      ["", "no element at byte 0"],
      ["text", "text outside of the element at byte 0"],
      ["<r>", "<r> is not closed at byte 3"],
      ["<r></s>", "</s> closes <r> at byte 3"],
      ["<r/><r/>", "a second element; a record is one at byte 4"],
      ["<r/>x", "text outside of the element at byte 4"],
      ["<!DOCTYPE r><r/>", "a DTD or other declaration, which is not read at byte 0"],
      ['<!DOCTYPE r [<!ENTITY a "b">]><r>&a;</r>', "a DTD or other declaration, which is not read at byte 0"],
      ["<r><a>&x;</a></r>", "&x; is no character, and entities are not read at byte 6"],
      ["<r><a>&#0;</a></r>", "&#0; is no character, and entities are not read at byte 6"],
      ["<r><a>&#xd800;</a></r>", "&#xd800; is no character, and entities are not read at byte 6"],
      ["<r><a>&amp</a></r>", "a reference that does not end at byte 6"],
      ["<r><a>]]></a></r>", "]]> within text at byte 6"],
      ["<r><a>\u0001</a></r>", "a character that XML does not allow at byte 6"],
      ["<r><a>\uffff</a></r>", "a character that XML does not allow at byte 6"],
      ["<r><!-- -- --></r>", "-- within a comment at byte 3"],
      ["<r><![CDATA[x</r>", "the CDATA section does not end at byte 3"],
      ["<r a='1' a='2'/>", "the attribute a comes twice at byte 9"],
      ["<r xmlns:x='u' xmlns:y='u' x:a='1' y:a='2'/>", "the attribute y:a comes twice at byte 35"],
      ["<r a='<'/>", "< within a value at byte 6"],
      ["<r a=1/>", "a value in quotes is wanted at byte 5"],
      ["<r a='1'b='2'/>", "> or a blank is wanted at byte 8"],
      ["<p:r/>", "the prefix p is of no namespace at byte 6"],
      ["<r xmlns:p=''/>", 'xmlns:p may not be "" at byte 3'],
      ["<r xmlns:xmlns='u'/>", 'xmlns:xmlns may not be "u" at byte 3'],
      ["<1/>", "a name is wanted at byte 1"],
      ...["<\u00d7/>", "<\u0300/>", "<r\u2326/>", "<r a\u037e='1'/>", "<é:\u00b7 xmlns:é='u'/>"].map(
        (document) =>
          [
            document,
            `a name with a character that XML does not allow there at byte ${document.includes(" a") ? 3 : 1}`,
          ] as const,
      ),
      ...[
        "<?xml ?>",
        "<?xml encoding='UTF-8'?>",
        "<?xml version='1.0' encoding='UTF-8' standalone='maybe'?>",
        "<?xml version='1.0' standalone='yes' encoding='UTF-8'?>",
        "<?xml version='1.0'encoding='UTF-8'?>",
        "<?xml version='1.0\"?>",
        "<?xml version='2.0'?>",
        "<?xml version='1.0' x='y'?>",
      ].map(
        (declaration) =>
          [
            `${declaration}<r/>`,
            "an XML declaration of other than version 1, encoding and standalone at byte 0",
          ] as const,
      ),
      ["<?x:ml version='1.0'?><r/>", "a processing instruction with a colon in its name at byte 0"],
      [" <?xml version='1.0'?><r/>", "an XML declaration that is not at the begin at byte 1"],
    ] as const)
      expect([
        document,
        one("a string;b string", document).replace("decode.syntax a:", "decode.syntax :"),
      ]).toEqual([document, `decode.syntax : ${why}`]);
    expect(one("a string", `${"<r>".repeat(1001)}`, { unknown: "ignore" })).toStartWith(
      "decode.depth : elements nested deeper than 1000 at byte 3000",
    );
  });

  test("what is no record of the schema", () => {
    expect(one(ITEMS, "<o><name>a</name><name>b</name></o>")).toBe(
      "decode.duplicate_key name: it comes twice, and the column is no list",
    );
    expect(one(ITEMS, "<o><nme>a</nme></o>")).toBe('decode.unknown_field : the schema has no element "nme"');
    expect(one(ITEMS, "<o ix='1'/>")).toBe('decode.unknown_field : the schema has no attribute "ix"');
    expect(one(ITEMS, "<o><name ix='1'>a</name></o>")).toBe(
      'decode.unknown_field name: the schema has no attribute "ix"',
    );
    expect(one(ITEMS, "<o>a<name/></o>")).toBe('decode.unknown_field #text: text beside elements: "a"');
    expect(one(ITEMS, "<o><name>a<b/></name></o>")).toBe(
      "decode.type name: it has elements, and string is wanted",
    );
    expect(one(ITEMS, "<o><item><qty>1</qty></item><item><qty>x</qty></item></o>")).toBe(
      'decode.type item[1].qty: "x" is no int32',
    );
    expect(one("a int32!", "<o/>")).toBe("decode.null a: missing, and the field is required");
    expect(one("a int32!", "<o><a> </a></o>")).toBe("decode.null a: empty, and the field is required");
    expect(one(ITEMS, "<o><_twg_x/></o>", { unknown: "ignore" })).toStartWith("decode.reserved");
    expect(one(ITEMS, "<o><x><y>1</y></x><name>a</name>b</o>", { unknown: "ignore" })).toBe("");
    expect(one(ITEMS, "<o/>", { maxBytes: 3 })).toStartWith("decode.size");
  });

  test("what is cut is refused for what it lacks, whatever the next record begins with", () => {
    for (const [cut, next] of [
      ["<?xml", " version='1.0'?><r/>"],
      ["<r><?a", "b?></r>"],
      ["<r><", "/r>"],
      ["<r><!-- x --", "></r>"],
      ["<r a=", "'1'/>"],
      ["<p:", "r/>"],
    ] as const) {
      const alone = one("a string", cut);
      const { faults } = read("a string", [cut, next]);
      expect([cut, faults[0]?.row, `${faults[0]?.code} : ${faults[0]?.reason}`]).toEqual([cut, 0, alone]);
    }
  });

  test("columns that no document can fill", () => {
    for (const table of ["map<string,int32>", "json", "list<list<int32>>", "struct<b list<json>>"])
      expect(() => read(`a ${table};b int32`, [])).toThrow("XML has no");
  });

  test("one of many costs only itself; more elements than there is room for", () => {
    const documents = Array.from({ length: 500 }, (_, i) =>
      i % 100 === 7 ? "<r><v>x</v></r>" : i % 100 === 9 ? "<r>" : `<r><v>${i}</v></r>`,
    );
    documents.push(`<r>${"<v>1</v>".repeat(20_000)}</r>`);
    const { rows, faults } = read("v list<int32>", documents);
    expect(faults.map((f) => f.row).toSorted((a, b) => a - b)).toEqual([
      7, 9, 107, 109, 207, 209, 307, 309, 407, 409,
    ]);
    expect(rows.length).toBe(491);
    expect((rows.at(-1)![0] as unknown[]).length).toBe(20_000);
  });
});
