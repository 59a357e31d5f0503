/** Refused records as `inspect rejects` shows them. Keys and values are data of the user: only their lengths, unless asked for. */
import type { RejectGroup, RejectPartition } from "./reject-groups.ts";
import type { RejectBytes, RejectSample, RejectTable } from "./reject-table.ts";
import { printable, styled } from "./style.ts";
import { type Cell, type Column, renderTable } from "./table.ts";

/** As `--json` prints it. */
export interface ShownTable {
  readonly sink: string;
  /** Folder, bucket or table. */
  readonly place: string;
  readonly files: number | null;
  readonly records: number;
  /** The largest first. */
  readonly groups: readonly ShownGroup[];
  /** Records of groups that are not among them. */
  readonly others: number;
}

interface ShownGroup {
  readonly code: string;
  readonly topic: string;
  readonly schemaId: string | null;
  readonly path: string;
  readonly records: number;
  readonly first: string | null;
  readonly last: string | null;
  readonly partitions: readonly RejectPartition[];
  readonly samples: readonly ShownSample[];
}

interface ShownSample {
  readonly partition: number;
  readonly offset: bigint;
  readonly time: string | null;
  readonly path: string;
  /** Null: it may quote the payload, and that is masked. */
  readonly message: string | null;
  readonly key: ShownBytes | null;
  readonly value: ShownBytes | null;
}

interface ShownBytes {
  readonly bytes: number;
  /** Only where it was asked for; what is no text as \xNN. */
  readonly escaped?: string;
}

export interface About {
  readonly sink: string;
  readonly place: string;
  readonly showValues: boolean;
}

/** Their messages speak of schemas and envelopes, the others' may quote from the payload. */
const WITHOUT_VALUES: ReadonlySet<string> = new Set([
  "decode.schema",
  "decode.incompatible",
  "decode.reserved",
  "decode.framing",
]);

export function shownTable(
  { sink, place, showValues }: About,
  { groups, files }: RejectTable,
  shown: readonly RejectGroup[],
  samples: ReadonlyMap<RejectGroup, readonly RejectSample[]>,
): ShownTable {
  const inGroups = shown.reduce((n, g) => n + g.records, 0);
  return {
    ...{ sink, place, files, records: groups.records, others: groups.records - inGroups },
    groups: shown.map((g) => ({
      ...g.kind,
      records: g.records,
      first: timeText(g.firstMs),
      last: timeText(g.lastMs),
      partitions: [...g.partitions.values()].sort((a, b) => a.partition - b.partition),
      samples: (samples.get(g) ?? []).map((s) => shownSample(s, g.kind.code, showValues)),
    })),
  };
}

function shownSample(s: RejectSample, code: string, showValues: boolean): ShownSample {
  const { partition, offset, path } = s;
  return {
    ...{ partition, offset, time: timeText(s.ms), path },
    message: showValues || WITHOUT_VALUES.has(code) ? s.message : null,
    key: shownBytes(s.key, showValues),
    value: shownBytes(s.value, showValues),
  };
}

function shownBytes(bytes: RejectBytes | null, showValues: boolean): ShownBytes | null {
  if (bytes === null) return null;
  return showValues ? { bytes: bytes.length, escaped: escaped(bytes) } : { bytes: bytes.length };
}

/** Text as it is, a backslash as \\, bytes that are no text and controls as \xNN; cut where it is long. */
function escaped({ head, length }: RejectBytes): string {
  let text = "";
  for (let at = 0; at < head.length; ) {
    const size = characterSize(head[at]!);
    const one = size === 0 ? "" : character(head.subarray(at, at + size));
    if (one === "") {
      text += `\\x${head[at]!.toString(16).padStart(2, "0")}`;
      at++;
    } else {
      text += one === "\\" ? "\\\\" : one;
      at += size;
    }
  }
  return length > head.length ? `${text}…` : text;
}

function characterSize(byte: number): number {
  if (byte < 0x80) return byte < 0x20 || byte === 0x7f ? 0 : 1;
  if (byte < 0xc2 || byte > 0xf4) return 0;
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function character(bytes: Uint8Array): string {
  try {
    return UTF8.decode(bytes);
  } catch {
    return "";
  }
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

export function tableText(table: ShownTable, colour: boolean): string {
  const { sink, place, files, records, groups, others } = table;
  const head = `${styled(printable(`${sink}: ${place}`), "bold", colour)}\n`;
  if (records === 0) return `${head}no refused records\n`;
  const columns: readonly Column[] = [
    { head: "RECORDS", align: "right" },
    { head: "CODE" },
    { head: "TOPIC", max: 60 },
    { head: "SCHEMA", max: 40 },
    { head: "PATH", max: 60 },
    { head: "FIRST" },
    { head: "LAST" },
    { head: "PARTITION:OFFSETS" },
  ];
  const rows = groups.map((g): readonly (string | Cell)[] => [
    String(g.records),
    { text: g.code, style: "yellow" },
    ...[g.topic, g.schemaId ?? "-", g.path === "" ? "-" : g.path],
    ...[g.first ?? "-", g.last ?? "-", spansText(g.partitions)],
  ]);
  const more = others === 0 ? "" : `, ${others} of them in groups that are not shown`;
  const inFiles = files === null ? "" : `, ${files} ${files === 1 ? "file" : "files"}`;
  const total = `${records} refused ${records === 1 ? "record" : "records"}${more}${inFiles}\n`;
  return `${head}${renderTable(columns, rows, colour)}${total}${groups.map((g) => samplesText(g, colour)).join("")}`;
}

/** `0:5-900 1:7`, the smallest partitions of many. */
function spansText(partitions: readonly RejectPartition[]): string {
  const texts = partitions.map(({ partition, first, last }) =>
    first === last ? `${partition}:${first}` : `${partition}:${first}-${last}`,
  );
  return texts.length <= 4 ? texts.join(" ") : `${texts.slice(0, 3).join(" ")} and ${texts.length - 3} more`;
}

function samplesText(g: ShownGroup, colour: boolean): string {
  if (g.samples.length === 0) return "";
  const head = `\n${styled(printable(`${g.code} in ${g.topic}`), "yellow", colour)}\n`;
  const lines = g.samples.map((s) => {
    const place = `${g.topic}/${s.partition}@${s.offset}${s.time === null ? "" : ` of ${s.time}`}`;
    const path = s.path === "" ? "" : `, at ${s.path}`;
    const told = s.message === null ? "" : `\n    ${printable(s.message)}`;
    return `  ${printable(place + path)}${told}\n    key ${bytesText(s.key)}, value ${bytesText(s.value)}\n`;
  });
  return head + lines.join("");
}

function bytesText(bytes: ShownBytes | null): string {
  if (bytes === null) return "null";
  const shown = bytes.escaped === undefined ? "" : `: ${printable(bytes.escaped)}`;
  return `of ${bytes.bytes} ${bytes.bytes === 1 ? "byte" : "bytes"}${shown}`;
}
