/** A batch of messages and its results, as Anthropic's clients see them. */
import { DateTime, Schema } from "effect"
import type { Batch } from "../../../../shared/batches/BatchRecord.ts"
import { messageBatchesPath } from "../../paths/RouteTemplate.ts"

const [ownPrefix, prefix] = ["batch_", "msgbatch_"] as const

export const idOf = ({ task: { id } }: Batch): string => prefix + id.slice(ownPrefix.length)

/** The id under which the batch is stored. */
export const toBatchId = (id: string): string => id.startsWith(prefix) ? ownPrefix + id.slice(prefix.length) : ""

const momentOf = (milliseconds: number | null): string | null =>
  milliseconds === null ? null : DateTime.formatIso(DateTime.makeUnsafe(milliseconds))

/** The counts are zero, except for `processing`, until the batch has ended. */
const countsOf = ({ progress: { completed, failed, unfinished }, request: { total }, status, task }: Batch): object => {
  const hasEnded = task.ended !== null
  const ofRest = (end: string) => hasEnded && status === end ? unfinished : 0
  const errored = status === "failed" ? total - completed : failed - unfinished
  return {
    processing: hasEnded ? 0 : total,
    succeeded: hasEnded ? completed : 0,
    errored: hasEnded ? errored : 0,
    canceled: ofRest("cancelled"),
    expired: ofRest("expired")
  }
}

export const view = (batch: Batch): object => {
  const { request, status, task } = batch
  const id = idOf(batch)
  return {
    id,
    type: "message_batch",
    processing_status: task.ended !== null ? "ended" : status === "cancelling" ? "canceling" : "in_progress",
    request_counts: countsOf(batch),
    created_at: momentOf(task.created),
    expires_at: momentOf(request.expires),
    ended_at: momentOf(task.ended),
    cancel_initiated_at: momentOf(task.stopping ?? null),
    archived_at: null,
    // clients complete it with their base URL
    results_url: task.ended === null ? null : `${messageBatchesPath}/${id}/results`
  }
}

const ResultLine = Schema.Struct({
  custom_id: Schema.String,
  response: Schema.NullOr(Schema.Struct({ status_code: Schema.Int, body: Schema.Unknown })),
  error: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String }))
})
const decodeLine = Schema.decodeUnknownSync(ResultLine)

const withoutAnswer: Readonly<Record<string, string>> = { batch_cancelled: "canceled", batch_expired: "expired" }

/** A line of one of the batch's files. */
export const toResult = (line: unknown): object => {
  const { custom_id, error, response } = decodeLine(line)
  if (response !== null) {
    const { body, status_code: status } = response
    const result = status < 300 ? { type: "succeeded", message: body } : { type: "errored", error: body }
    return { custom_id, result }
  }
  const { code, message } = error ?? { code: "internal_error", message: "Internal error" }
  const type = withoutAnswer[code]
  return {
    custom_id,
    result: type === undefined
      ? { type: "errored", error: { type: "error", error: { type: "api_error", message, code }, request_id: null } }
      : { type }
  }
}
