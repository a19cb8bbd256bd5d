/** Puts the results of a batch together: a file of answers and a file of errors, each with one line for each of its requests. */
import { Stream } from "effect"
import type { Owner } from "../contract/Owner.ts"
import { JetStreamFailed } from "../nats/JetStream.ts"
import { customIdOf } from "./BatchLine.ts"
import type { Ran } from "./BatchRun.ts"
import type { InputLine } from "./lines/InputLines.ts"
import { outputOf } from "./lines/Line.ts"
import type { Followed, LineLog } from "./lines/LineLog.ts"

interface Parts<E> {
  readonly log: LineLog
  readonly owner: Owner
  /** The batch's id. */
  readonly id: string
  readonly ran: Ran
  /** Absent: the requests are gone. */
  readonly input: (() => Stream.Stream<InputLine, E>) | undefined
}

/** How long the log may tell nothing while results are missing, in milliseconds. */
const silentMs = 30_000

const reasons = {
  expired: "This request was not finished before the batch expired.",
  cancelled: "This request was not finished before the batch was cancelled."
} as const

/**
 * The content of each file; `undefined` if nothing belongs into it. Lines without a result are left out if the requests are lost, since
 * only these have their ids.
 */
export const partsOf = <E>({ id, input, log, owner, ran: { early, lines } }: Parts<E>) => {
  const results = (kind: "completed" | "failed") => {
    const count = lines.count(kind)
    return log.follow(owner, id).pipe(
      Stream.filter((found): found is Followed => found.line !== "closed" && found.entry.kind === kind),
      // a line is written once more at most, and has a result then
      Stream.take(count),
      Stream.timeoutOrElse({
        duration: silentMs,
        orElse: () => Stream.fail(new JetStreamFailed({ detail: "results of a batch are missing" }))
      }),
      Stream.flatMap((found) => log.outputOf({ owner, batch: id, line: found.line }, found))
    )
  }

  /** The lines that have no result, from the requests. */
  const unfinished = (reason: keyof typeof reasons, input: () => Stream.Stream<InputLine, E>) =>
    Stream.suspend(input).pipe(
      Stream.filter(({ index }) => !["completed", "failed"].includes(lines.stateOf(index))),
      Stream.map((line) => {
        const error = { code: `batch_${reason}`, message: reasons[reason] }
        const customId = customIdOf(line)
        return Buffer.from(outputOf({ batch: id, line: line.index }, { customId, error }).join(""))
      })
    )

  const errors = lines.count("failed") > 0 ? results("failed") : undefined
  const rest = early === undefined || early === "lost" || input === undefined ? undefined : unfinished(early, input)
  return {
    output: lines.count("completed") > 0 ? results("completed") : undefined,
    errors: errors === undefined ? rest : rest === undefined ? errors : Stream.concat(errors, rest)
  }
}
