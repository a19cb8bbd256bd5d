/** What came of an upgrade, as tables in Markdown, and what of it is wrong. */
import { table } from "../bench/Results.ts"
import { tally } from "../fixture/client/ChatClient.ts"
import type { Move, Sums, UpgradeReport } from "./Upgrade.ts"

export interface Outcome extends UpgradeReport {
  /** The counters of the keys that were used. */
  readonly counted: Sums
  /** What counts towards the budgets of these keys, in US dollars. */
  readonly spentUsd: number
}

const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
/** An amount, exact enough to compare sums. */
export const dollars = (usd: number): string => usd.toFixed(6)

const sums = (name: string, { costUsd, inputTokens, outputTokens, requests }: Sums) => [
  name,
  requests,
  inputTokens,
  outputTokens,
  dollars(costUsd)
]

const row = ({ drainMs, exit, failed, from, readyMs, requests, service, to }: Move) => [
  service,
  from,
  to,
  seconds(readyMs),
  seconds(drainMs),
  exit,
  requests,
  failed
]

export const textOf = ({ counted, events, failed, moves, requests, served, spentUsd }: Outcome): string =>
  [
    "A gateway of two ingresses, two chat workers, a worker for embeddings and the console is upgraded and rolled back, one process " +
    `at a time, while clients send chats, streams and embeddings. Of ${requests} requests, ${failed.length} failed.`,
    table(
      ["process", "from", "to", "ready after", "former one ended after", "exit status", "requests meanwhile", "failed"],
      moves.map(row)
    ).join("\n"),
    table(["usage", "requests", "input tokens", "output tokens", "cost in USD"], [
      sums("served by the provider", served),
      sums("in usage events", events),
      sums("in counters", counted),
      ["in budgets", "", "", "", dollars(spentUsd)]
    ]).join("\n")
  ].join("\n\n")

const isSame = (one: Sums, other: Sums): boolean =>
  one.requests === other.requests && one.inputTokens === other.inputTokens && one.outputTokens === other.outputTokens &&
  dollars(one.costUsd) === dollars(other.costUsd)

/** What must not happen in an upgrade, but did. */
export const failures = ({ counted, doubled, errors, events, failed, moves, served, spentUsd }: Outcome) => [
  ...failed.length === 0
    ? []
    : [`${failed.length} requests failed: ${JSON.stringify(tally(failed.map(({ outcome }) => outcome)))}`],
  ...doubled.length === 0 ? [] : [`${doubled.length} paid calls were made twice`],
  ...moves.filter(({ exit }) => exit !== 0).map(({ exit, from, service }) => `${service} ${from} ended with ${exit}`),
  ...isSame(served, events) ? [] : ["usage events differ from what the provider served"],
  ...isSame(served, counted) ? [] : ["counters differ from what the provider served"],
  ...dollars(spentUsd) === dollars(served.costUsd) ? [] : ["budgets differ from what the provider served"],
  ...errors
]
