/** A Kafka release: its jars in the cache, and how its JVM is told to log. Shared by all clusters of that release. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface Release {
  readonly version: string;
  readonly libs: string;
  readonly logFlag: string;
}

const LOG4J2 = `status = error
appender.out.type = Console
appender.out.name = OUT
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1} %m%n
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = OUT
`;
const RELOAD4J = `log4j.rootLogger = INFO, OUT
log4j.appender.OUT = org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout = org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern = %d{HH:mm:ss.SSS} %p %c{1} %m%n
`;

/** Fetches what is not there yet (some 120 MB from Maven Central on the first call). */
export function fetchRelease(version: string, cache: string): Release {
  const old = version.startsWith("3.");
  const folder = join(cache, `kafka-${version}`);
  const libs = join(folder, "libs");
  const logFile = join(folder, old ? "log4j.properties" : "log4j2.properties");
  const release = {
    version,
    libs,
    logFlag: old ? `-Dlog4j.configuration=file:${logFile}` : `-Dlog4j2.configurationFile=${logFile}`,
  };
  if (!existsSync(libs)) {
    const partial = join(folder, `libs.${process.pid}`);
    mkdirSync(partial, { recursive: true });
    const mvn = Bun.spawnSync(
      [
        "mvn",
        "-q",
        "-B",
        "-f",
        join(import.meta.dir, "pom.xml"),
        `-P${old ? "reload4j" : "log4j2"}`,
        `-Dkafka.version=${version}`,
        "-DincludeScope=runtime",
        `-DoutputDirectory=${partial}`,
        "dependency:copy-dependencies",
      ],
      { stdout: "pipe", stderr: "pipe" },
    );
    if (!mvn.success) {
      rmSync(partial, { recursive: true, force: true });
      throw new Error(`Maven could not fetch Kafka ${version}:\n${mvn.stdout}${mvn.stderr}`);
    }
    renameSync(partial, libs);
  }
  writeFileSync(logFile, old ? RELOAD4J : LOG4J2);
  return release;
}
