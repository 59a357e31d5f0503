/** What librdkafka reads of a topic against what psql finds in a table: every value of every record. */
import { python_ } from "./real-kafka.ts";

export interface TableTarget {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
  readonly table: string;
}

export interface ComparedTable {
  readonly kafka_rows: number;
  readonly rows: number;
  /** SHA-256 over all records in the order of partition and offset, as each side has them. */
  readonly kafka_hash: string;
  readonly table_hash: string;
  readonly differences: readonly string[];
}

export function compareTable(bootstrap: string, topic: string, target: TableTarget): Promise<ComparedTable> {
  return python_<ComparedTable>("compare_table.py", [bootstrap, topic, JSON.stringify(target)]);
}
