/** The list of metadata columns is a promise to readers: names and order are pinned here word for word. */
import { expect, test } from "bun:test";
import {
  DEFAULT_METADATA_PREFIX,
  METADATA_COLUMNS,
  METADATA_PREFIX_PATTERN,
  metadataName,
} from "../../../src/core/records/metadata-columns.ts";

test("names, in order, with the default prefix", () => {
  expect(METADATA_COLUMNS.map((c) => metadataName(DEFAULT_METADATA_PREFIX, c)).join(" ")).toBe(
    "_twg_source_transport _twg_source_cluster _twg_source_topic _twg_source_partition _twg_source_offset " +
      "_twg_source_message_id _twg_source_leader_epoch _twg_source_timestamp _twg_source_timestamp_type " +
      "_twg_source_key _twg_source_value _twg_source_headers _twg_source_producer_id _twg_source_producer_epoch " +
      "_twg_source_base_sequence _twg_source_transactional _twg_source_producer_name _twg_source_sequence_id " +
      "_twg_source_event_time _twg_source_schema_version _twg_source_redelivery_count _twg_source_ordering_key " +
      "_twg_record_id _twg_ingest_ts _twg_emit_ts _twg_pipeline _twg_schema_id _twg_dq",
  );
});

test("provenance follows from the name, every column says what it means, names are unique", () => {
  for (const c of METADATA_COLUMNS) {
    expect(c.provenance).toBe(c.name.startsWith("source_") ? "source" : "stamped");
    expect(c.meaning.length).toBeGreaterThan(5);
  }
  expect(new Set(METADATA_COLUMNS.map((c) => c.name)).size).toBe(METADATA_COLUMNS.length);
});

test("prefixes that can stand in an unquoted SQL name, and some that cannot", () => {
  for (const good of ["_twg_", "m_", "_"]) expect(METADATA_PREFIX_PATTERN.test(good)).toBe(true);
  for (const bad of ["", "1_", "a-b", "A_", "a b", "x".repeat(33)])
    expect(METADATA_PREFIX_PATTERN.test(bad)).toBe(false);
});
