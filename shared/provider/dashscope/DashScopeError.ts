/** What is particular to DashScope's errors, which are `{code, message, request_id}`. */
import { type JobError, ProviderFailed } from "../../contract/JobError.ts"

/** Said with a 400 of an account that has not paid its bill: no fault of whoever sent the request. */
const accountCodes = ["Arrearage"]

export const described = (error: JobError): JobError =>
  error._tag === "ProviderRejected" && accountCodes.includes(error.code ?? "")
    ? new ProviderFailed({
      provider: error.provider,
      reason: "credentials",
      status: error.status,
      retryAfterMs: null
    })
    : error
