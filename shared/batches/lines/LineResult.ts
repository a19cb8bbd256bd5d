/** Makes the result of a line for which there is no answer from a provider. */
import { Schema } from "effect"
import { complete, descriptionOf, envelope } from "../../contract/http/ErrorForm.ts"
import { JobError } from "../../contract/JobError.ts"
import { operationNamed } from "../../contract/operations/operations.ts"
import type { ResultAbout } from "./Line.ts"
import type { Result } from "./LineLog.ts"

const encode = Schema.encodeSync(JobError)
const decode = Schema.decodeSync(JobError)

/** The result for an error. A refusal becomes an answer with a status; a failure of the gateway or a provider only an error. */
export const resultOf = (customId: string, operation: string, failure: JobError, requestId: string): Result => {
  // encoding cuts texts that quote the request, so that the result fits into the log
  const error = decode(encode(failure))
  const described = complete(descriptionOf(error))
  const { code, status } = described
  if (status >= 500) {
    const about: ResultAbout = { customId, error: { code: code ?? "internal_error", message: error.message } }
    return { about, bytes: new Uint8Array(0) }
  }
  const dialect = operationNamed(operation)?.dialect ?? "openai"
  const body = JSON.stringify(envelope(dialect, described, error.message, requestId))
  return { about: { customId, status }, bytes: Buffer.from(body) }
}
