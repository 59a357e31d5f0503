/** Completion scripts for shells, made from the tree of commands so that they cannot go stale. */
import type { Command, Option } from "commander";

type Shell = "bash" | "zsh" | "fish";

interface Node {
  /** Words after `twg`; empty for the program itself. */
  readonly words: readonly string[];
  readonly about: string;
  readonly subcommands: readonly Node[];
  readonly options: readonly Flag[];
  /** Values of the first argument, where they are a closed list. */
  readonly choices: readonly string[];
  readonly takesPaths: boolean;
}

interface Flag {
  readonly names: readonly string[];
  readonly about: string;
  readonly choices: readonly string[];
  readonly takesValue: boolean;
}

export function completionScript(shell: Shell, program: Command): string {
  const root = nodeOf(program, []);
  const all = flatten(root);
  if (shell === "bash") return bash(all);
  return shell === "zsh" ? zsh(all) : fish(all);
}

function nodeOf(command: Command, words: readonly string[]): Node {
  const [argument] = command.registeredArguments;
  return {
    words,
    about: command.description(),
    subcommands: command.commands.map((c) => nodeOf(c, [...words, c.name()])),
    options: [
      ...command.options.map(flagOf),
      { names: ["--help", "-h"], about: "print help", choices: [], takesValue: false },
    ],
    choices: argument?.argChoices ?? [],
    takesPaths: argument !== undefined && argument.argChoices === undefined,
  };
}

function flagOf(option: Option): Flag {
  const names = [option.long, option.short].filter((n) => n !== undefined && n !== null);
  return {
    names,
    about: option.description,
    choices: option.argChoices ?? [],
    takesValue: option.required || option.optional,
  };
}

function flatten(node: Node): Node[] {
  return [node, ...node.subcommands.flatMap(flatten)];
}

function wordsFor(node: Node): string[] {
  const names = node.subcommands.map((n) => n.words.at(-1) ?? "");
  return [...names, ...node.choices, ...node.options.flatMap((o) => o.names)];
}

function valueFlags(nodes: readonly Node[]): Map<string, readonly string[]> {
  const flags = nodes.flatMap((n) => n.options).filter((o) => o.takesValue);
  return new Map(flags.map((o) => [o.names.join("|"), o.choices]));
}

function bash(nodes: readonly Node[]): string {
  const paths = nodes.filter((n) => n.words.length > 0).map((n) => `"${n.words.join(" ")}"`);
  const values = [...valueFlags(nodes)].map(([names, choices]) => {
    const words = choices.length > 0 ? `-W "${choices.join(" ")}"` : "-f";
    return `    ${names}) COMPREPLY=($(compgen ${words} -- "$cur")); return ;;`;
  });
  const cases = nodes.map((n) => `    "${n.words.join(" ")}") words="${wordsFor(n).join(" ")}" ;;`);
  return `# bash completion of twg: source <(twg completions bash)
_twg() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" at="" word words=""
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${at:+$at }$word" in
      ${paths.join("|")}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$prev" in
${values.join("\n")}
  esac
  case "$at" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -o default -F _twg twg
`;
}

function zsh(nodes: readonly Node[]): string {
  const paths = nodes.filter((n) => n.words.length > 0).map((n) => `"${n.words.join(" ")}"`);
  const values = [...valueFlags(nodes)].map(([names, choices]) => {
    return `    ${names}) ${choices.length > 0 ? `compadd -- ${choices.join(" ")}` : "_files"}; return ;;`;
  });
  const cases = nodes.map((n) => {
    return `    "${n.words.join(" ")}") compadd -- ${wordsFor(n).join(" ")}${n.takesPaths ? "; _files" : ""} ;;`;
  });
  return `#compdef twg
# zsh completion of twg: twg completions zsh > "\${fpath[1]}/_twg"
_twg() {
  local at="" word prev="\${words[CURRENT-1]}"
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${at:+$at }$word" in
      ${paths.join("|")}) at="\${at:+$at }$word" ;;
    esac
  done
  case "$prev" in
${values.join("\n")}
  esac
  case "$at" in
${cases.join("\n")}
  esac
}
if [ "$funcstack[1]" = "_twg" ]; then _twg "$@"; else compdef _twg twg; fi
`;
}

function fish(nodes: readonly Node[]): string {
  const lines = nodes.flatMap((n) => [
    ...n.subcommands.map(
      (s) =>
        `complete -c twg -f -n '__twg_at ${n.words.join(" ")}' -a ${s.words.at(-1)} -d ${fishText(s.about)}`,
    ),
    ...n.choices.map((c) => `complete -c twg -f -n '__twg_at ${n.words.join(" ")}' -a ${c}`),
    ...n.options.map((o) => fishOption(n, o)),
  ]);
  return `# fish completion of twg: twg completions fish > ~/.config/fish/completions/twg.fish
function __twg_words
  for t in (commandline -opc)[2..]
    string match -q -- '-*' $t; or echo $t
  end
end
function __twg_at
  set -l have (__twg_words)
  test "$have" = "$argv"
end
function __twg_in
  set -l have (__twg_words)
  test (count $have) -ge (count $argv); and test "$have[1..(count $argv)]" = "$argv"
end
${lines.join("\n")}
`;
}

function fishOption(node: Node, flag: Flag): string {
  const names = flag.names
    .map((n) => (n.startsWith("--") ? `-l ${n.slice(2)}` : `-s ${n.slice(1)}`))
    .join(" ");
  const where = node.subcommands.length > 0 || node.words.length === 0 ? "__twg_at" : "__twg_in";
  const value =
    flag.choices.length > 0 ? ` -x -a '${flag.choices.join(" ")}'` : flag.takesValue ? " -r -F" : "";
  return `complete -c twg -n '${`${where} ${node.words.join(" ")}`.trim()}' ${names}${value} -d ${fishText(flag.about)}`;
}

function fishText(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
