/** Renders the result of the comparison of bills and usage. */
import { table } from "../../bench/Results.ts"
import { addUnits, billUnits, noUnits } from "../../fixture/provider/answers/Bill.ts"
import type { BillingReport } from "./Billing.ts"
import { type Difference, type Estimate, tokensOf } from "./Reconcile.ts"

const mostListed = 40

const units: Readonly<Record<typeof billUnits[number], string>> = {
  inputTokens: "input tokens",
  outputTokens: "output tokens",
  images: "pictures",
  seconds: "seconds of video and sound",
  searchUnits: "searches"
}

const number = (value: number): string => value.toLocaleString("en")

const line = ({ billed, event, metered, reason, ...more }: Difference | Estimate): string => {
  const others = billUnits.slice(2).filter((unit) => billed[unit] !== metered[unit])
  return [
    event.id.slice(0, 18).padEnd(18),
    event.operation.padEnd(22),
    (event.error ?? event.outcome).padEnd(16),
    `${tokensOf(billed)} tokens billed, ${tokensOf(metered)} in usage` +
    ("estimatedTokens" in more ? `, ${more.estimatedTokens} of them estimated` : "") +
    others.map((unit) => `; ${billed[unit]} ${units[unit]} billed, ${metered[unit]} in usage`).join(""),
    `(${reason})`
  ].join("  ")
}

/** A line for each request whose bill cannot be known, with its event, and for each error. */
export const lines = ({ differences, estimates, wrong }: BillingReport): ReadonlyArray<string> => [
  ...[...differences, ...estimates].map(line),
  ...wrong.map((what) => `WRONG  ${what}`)
]

const byReason = (all: ReadonlyArray<Difference>) =>
  [...new Set(all.map(({ reason }) => reason))].toSorted().map((reason) => {
    const own = all.filter((difference) => difference.reason === reason)
    const billed = own.reduce((sum, difference) => addUnits(sum, difference.billed), noUnits)
    const metered = own.reduce((sum, difference) => addUnits(sum, difference.metered), noUnits)
    return [reason, own.length, number(tokensOf(billed)), number(tokensOf(metered))]
  })

const counts = (all: Readonly<Record<string, number>>): string =>
  Object.entries(all).filter(([, count]) => count > 0).map(([name, count]) => `${name} ${number(count)}`).join(", ") ||
  "none"

export const section = (report: BillingReport): string => {
  const { billed, billedEqual, books, calls, differences, equal, estimates, faults, metered, requests, wrong } = report
  const unknown = [...differences, ...estimates]
  const share = (100 * unknown.length / requests).toFixed(1)
  const listed = unknown.slice(0, mostListed).map(line)
  const more = unknown.length - listed.length
  return [
    `${number(requests)} requests over every operation made ${
      number(calls)
    } calls to providers, while clients left and`,
    "providers failed, fell silent and cut their answers. The usage of " +
    `${number(equal)} requests equals their bill.`,
    `The bill of ${
      number(unknown.length)
    } (${share} %) cannot be known. **${wrong.length} differences are unexplained.**`,
    "",
    `* Faults: ${counts(faults)}.`,
    `* What clients saw: ${counts(report.outcomes)}.`,
    "",
    ...table(
      ["unit", "billed by providers", "of that, requests whose usage is equal", "in usage"],
      billUnits.map((unit) => [units[unit], ...[billed, billedEqual, metered].map((sum) => number(sum[unit]))])
    ),
    "",
    "A unit of any kind costs one dollar here, so that dollars are units.",
    "",
    ...table(["book", "requests", "US dollars"], [
      ["usage events", number(books.events.requests), number(books.events.costUsd)],
      ["usage counters", number(books.counters.requests), number(books.counters.costUsd)],
      ["spending of the keys, for their budgets", "", number(books.spentUsd)]
    ]),
    "",
    "Providers bill a call in full that is reset, cut or given up: the worst case. Where they have not reported its usage, the gateway",
    "cannot know the bill. Each such request has one event that says so. Its usage is at most what was billed, and at least",
    "the bill of an answer that was complete. Estimates are separate: the gateway counts four bytes as a token.",
    "",
    ...table(["why the bill cannot be known", "requests", "tokens billed", "tokens in usage"], [
      ...byReason(differences),
      ...byReason(estimates).map(([reason, ...more]) => [`${reason} (estimated)`, ...more])
    ]),
    "",
    ...(listed.length === 0
      ? []
      : ["```", ...listed, ...(more > 0 ? [`and ${more} more, which the command prints`] : []), "```"]),
    ...(wrong.length === 0 ? [] : ["", "```", ...wrong.slice(0, 20), "```"])
  ].join("\n").trimEnd()
}
