/**
 * Who may import whom: the ranks of docs/architecture.md as rules. A file imports its own folder or a lower rank;
 * type imports count. `bun scripts/check.ts ranks` runs it, test/scripts/ranks.test.ts shows that it catches.
 */
const RANKS = [
  ["failure", "time"],
  ["bytes"],
  ["sasl", "compression", "config", "observe"],
  ["records", "arrow", "types"],
  ["schema"],
  ["codecs", "formats"],
  ["contract", "quality"],
  ["ports"],
  ["coverage"],
  ["delivery"],
  ["pipeline", "recovery"],
];
const CORE = "^src/core/";
const inCore = (folders) => `${CORE}(${folders.join("|")})/`;
const ABOVE_CORE = "^src/(adapters|commands)/|^src/[^/]+\\.ts$";

const ranks = RANKS.flatMap((folders, rank) => {
  const higher = RANKS.slice(rank + 1).flat();
  const name = folders.join("-");
  const rules = [
    {
      name: `rank-${name}-imports-higher`,
      comment: "A file imports its own folder or a lower rank.",
      severity: "error",
      from: { path: inCore(folders) },
      to: { path: higher.length > 0 ? `${inCore(higher)}|${ABOVE_CORE}` : ABOVE_CORE },
    },
  ];
  if (folders.length > 1)
    rules.push({
      name: `rank-${name}-imports-sibling`,
      comment: "Folders of one rank do not import each other.",
      severity: "error",
      from: { path: inCore(folders) },
      to: { path: inCore(folders), pathNot: `${CORE}$1/` },
    });
  return rules;
});

module.exports = {
  forbidden: [
    ...ranks,
    {
      name: "core-folder-without-rank",
      comment: "Give a new folder of src/core its rank in .dependency-cruiser.cjs.",
      severity: "error",
      from: { path: CORE, pathNot: inCore(RANKS.flat()) },
      to: {},
    },
    {
      name: "core-does-io",
      comment: "Core knows no sockets, files or processes.",
      severity: "error",
      from: { path: CORE },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "adapter-imports-adapter",
      comment: "Adapters meet at core/ports; `net` alone is shared.",
      severity: "error",
      from: { path: "^src/adapters/([^/]+)/" },
      to: { path: "^src/adapters/", pathNot: "^src/adapters/($1|net)/" },
    },
    {
      name: "adapter-imports-command",
      comment: "Commands wire adapters, never the other way round.",
      severity: "error",
      from: { path: "^src/adapters/" },
      to: { path: "^src/commands/|^src/[^/]+\\.ts$" },
    },
    {
      name: "command-imports-main",
      comment: "main.ts and lane.ts are entry points.",
      severity: "error",
      from: { path: "^src/commands/" },
      to: { path: "^src/[^/]+\\.ts$" },
    },
    {
      name: "protocol-does-io",
      comment: "wire/ and session/ are machines over bytes and time; client.ts joins them to sockets.",
      severity: "error",
      from: { path: "^src/adapters/[^/]+/(wire|session)/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "protocol-imports-net",
      comment: "wire/ and session/ are machines over bytes and time; client.ts joins them to sockets.",
      severity: "error",
      from: { path: "^src/adapters/[^/]+/(wire|session)/" },
      to: { path: "^src/adapters/net/" },
    },
    {
      name: "apache-arrow-outside-core-arrow",
      comment: "One version, one door.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/core/arrow/" },
      to: { path: "apache-arrow" },
    },
    {
      name: "codec-imports-codec",
      comment: "Codecs know no sibling.",
      severity: "error",
      from: { path: "^src/core/codecs/([^/]+)/" },
      to: { path: "^src/core/codecs/[^/]+/", pathNot: "^src/core/codecs/$1/" },
    },
    {
      name: "codec-imports-transport",
      comment: "Codecs know no transport.",
      severity: "error",
      from: { path: "^src/core/codecs/" },
      to: { path: "^src/core/sasl/|^src/adapters/" },
    },
    {
      name: "source-imports-codec",
      comment: "Sources deliver bytes; decoding is the lane's.",
      severity: "error",
      from: { path: "^src/adapters/.*/source\\.ts$" },
      to: { path: "^src/core/codecs/" },
    },
    {
      name: "product-imports-house",
      comment: "src stands without tests, scripts and benchmarks.",
      severity: "error",
      from: { path: "^src/" },
      to: { path: "^(test|scripts|bench)/" },
    },
    {
      name: "circular",
      comment: "A circle of imports has no order of initialisation.",
      severity: "error",
      from: { path: "^src/" },
      to: { circular: true, viaOnly: { dependencyTypesNot: ["type-only"] } },
    },
    {
      name: "unresolvable",
      comment: "Every import leads somewhere.",
      severity: "error",
      from: { path: "^src/" },
      to: { couldNotResolve: true, pathNot: "^bun(:|$)" },
    },
    {
      name: "development-dependency",
      comment: "The product uses `dependencies` only.",
      severity: "error",
      from: { path: "^src/" },
      to: { dependencyTypes: ["npm-dev"], dependencyTypesNot: ["type-only"] },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    builtInModules: { add: ["bun", "bun:ffi", "bun:sqlite", "bun:test", "bun:jsc"] },
    enhancedResolveOptions: { exportsFields: ["exports"], extensions: [".ts", ".js", ".json", ".node"], conditionNames: ["bun", "import", "require", "node", "default"] },
  },
};
