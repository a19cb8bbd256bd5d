/** Assembles the results of a batch: a file of answers and a file of errors, with one line for each request. */
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
  /** Reads the requests. `undefined` if their file is lost. */
  readonly input: (() => Stream.Stream<InputLine, E>) | undefined
}

/** How long the log may be silent while results are missing, in milliseconds. */
const silentMs = 30_000

const reasons = {
  expired: "This request was not finished before the batch expired.",
  cancelled: "This request was not finished before the batch was cancelled."
} as const

/**
 * The content of each file; `undefined` for a file that would be empty. If the requests are lost, lines without a result are left
 * out, since only the requests have their ids.
 */
export const partsOf = <E>({ id, input, log, owner, ran: { early, lines } }: Parts<E>) => {
  const results = (kind: "completed" | "failed") => {
    const count = lines.count(kind)
    return log.follow(owner, id).pipe(
      // before the filter, because lines of the other kind may fill more time than this
      Stream.timeoutOrElse({
        duration: silentMs,
        orElse: () => Stream.fail(new JetStreamFailed({ detail: "results of a batch are missing" }))
      }),
      Stream.filter((found): found is Followed => found.line !== "closed" && found.entry.kind === kind),
      // the log has exactly `count` such lines: a line with a result is not written again
      Stream.take(count),
      Stream.flatMap((found) => log.outputOf({ owner, batch: id, line: found.line }, found))
    )
  }

  /** An error for each request that has no result. */
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
