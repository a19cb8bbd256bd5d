/** The report of a chaos run, and whether it passed. */
import type { Entry } from "../fixture/client/Load.ts"
import type { ChaosReport } from "./Chaos.ts"
import type { BatchReport } from "./ChaosBatch.ts"

const counts = (record: Readonly<Record<string, number>>): string =>
  Object.entries(record).filter(([, count]) => count > 0).map(([name, count]) => `${count} × ${name}`).join(", ") ||
  "none"

const entries = (list: ReadonlyArray<Entry>): string =>
  [`${list.length}`, ...list.slice(0, 10).map(({ id, ingress: _, ...entry }) => `    ${id}: ${JSON.stringify(entry)}`)]
    .join("\n")

export const text = (report: ChaosReport): string =>
  [
    `faults               ${counts(report.faults)}`,
    `requests             ${report.requests}`,
    `answers              ${report.answers}`,
    `errors               ${counts(report.errors)}`,
    `longest outage       ${(report.longestOutageMs / 1_000).toFixed(1)} s`,
    `jobs left over       ${report.orphans}`,
    `lost                 ${entries(report.lost)}`,
    `failed before call   ${entries(report.unsent)}`,
    `paid twice           ${entries(report.doubled)}`,
    ...(report.batch === undefined ? [] : batchText(report.batch)),
    `exited by itself     ${
      report.ended.map(({ log, name, pid }) => `${name} ${pid}:\n${log.slice(-2_000)}`).join("\n") || "none"
    }`
  ].join("\n")

const batchText = (
  { answers, billedUnknown, calls, errors, events, lines, wrong }: BatchReport
): ReadonlyArray<string> => [
  `batch                ${lines} requests: ${answers} answers, ${
    counts(errors)
  } errors; ${calls} calls, ${events} usage events`,
  `  its calls without usage  ${billedUnknown}, each with an event`,
  `  violations         ${wrong.slice(0, 10).join("\n    ") || "none"}`
]

/** The violated guarantees; `undefined` if there are none. */
export const broken = ({ batch, doubled, ended, lost }: ChaosReport): string | undefined => {
  const what = [
    ...(lost.length > 0 ? [`${lost.length} requests were lost`] : []),
    ...(doubled.length > 0 ? [`${doubled.length} requests were paid twice`] : []),
    ...(batch?.wrong ?? []),
    ...(ended.length > 0 ? [`${ended.length} processes exited by themselves`] : [])
  ]
  return what.length === 0 ? undefined : what.join(", ")
}
