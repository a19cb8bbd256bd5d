/** What the checks saw, as Markdown. */
import { table } from "../../bench/Results.ts"
import type { Outcome } from "./Checks.ts"

/** A cell of a table, which is one line. */
const cell = (text: string): string => (text.split("\n")[0] ?? "").replaceAll("|", "\\|")

export const textOf = (outcomes: ReadonlyArray<Outcome>, version: string): string =>
  [
    `The manifests on a control plane of Kubernetes ${version}.`,
    "",
    ...table(
      ["check", "seen", "seconds", "holds"],
      outcomes.map(({ holds, ms, seen, what }) => [
        what,
        cell(seen),
        (ms / 1_000).toFixed(1),
        holds ? "yes" : "**no**"
      ])
    )
  ].join("\n")
