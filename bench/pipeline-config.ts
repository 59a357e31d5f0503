/** What every pipeline of a bench over Kafka has: a topic from its start, raw files in the folder. */
export interface BenchPipeline {
  readonly folder: string;
  readonly bootstrap: string;
  readonly topic: string;
  /** Lines of the raw sink. */
  readonly raw?: string;
  /** Other sections. */
  readonly more: string;
}

export function pipelineConfig({ folder, bootstrap, topic, raw = "", more }: BenchPipeline): string {
  return `[pipeline]
name = "bench"
state_dir = "${folder}/state"
[source]
type = "kafka"
bootstrap = ["${bootstrap}"]
topics = ["${topic}"]
start = "earliest"
[[sink]]
name = "raw"
type = "parquet"
role = "primary_raw"
path = "${folder}/raw"
${raw}
${more.includes("[observability]") ? "" : '[observability]\nlisten = "off"'}
${more}
`;
}
