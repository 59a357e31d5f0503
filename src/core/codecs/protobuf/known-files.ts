/** Files that any schema may import without bringing them along. */
import type { DescFile } from "@bufbuild/protobuf";
import {
  type FileDescriptorProto,
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
} from "@bufbuild/protobuf/wkt";

const FILES: readonly DescFile[] = [
  file_google_protobuf_any,
  file_google_protobuf_api,
  file_google_protobuf_descriptor,
  file_google_protobuf_duration,
  file_google_protobuf_empty,
  file_google_protobuf_field_mask,
  file_google_protobuf_source_context,
  file_google_protobuf_struct,
  file_google_protobuf_timestamp,
  file_google_protobuf_type,
  file_google_protobuf_wrappers,
];

const BY_NAME = new Map(FILES.map((f) => [f.proto.name, f.proto]));

export function wellKnownFile(name: string): FileDescriptorProto | undefined {
  return BY_NAME.get(name);
}

/**
 * Files that the Java clients of schema registries bring along, so that schemas which import them name no reference. Only
 * those with types for fields; a file with options alone is not needed.
 */
const SOURCES: Readonly<Record<string, string>> = {
  "confluent/type/decimal.proto":
    'syntax = "proto3"; package confluent.type; message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }',
  "google/type/date.proto":
    'syntax = "proto3"; package google.type; message Date { int32 year = 1; int32 month = 2; int32 day = 3; }',
  "google/type/timeofday.proto":
    'syntax = "proto3"; package google.type; message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }',
  "google/type/money.proto":
    'syntax = "proto3"; package google.type; message Money { string currency_code = 1; int64 units = 2; int32 nanos = 3; }',
  "google/type/latlng.proto":
    'syntax = "proto3"; package google.type; message LatLng { double latitude = 1; double longitude = 2; }',
  "google/type/interval.proto":
    'syntax = "proto3"; package google.type; import "google/protobuf/timestamp.proto"; message Interval { google.protobuf.Timestamp start_time = 1; google.protobuf.Timestamp end_time = 2; }',
};

export function knownSource(name: string): string | undefined {
  return Object.hasOwn(SOURCES, name) ? SOURCES[name] : undefined;
}
