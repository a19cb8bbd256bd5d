/** A response in the background as clients see it before it is complete: the settings of its request, and its status. */
import type { ResponsesRequest } from "../../../shared/contract/operations/Responses.ts"
import { settingsOf } from "../../../shared/contract/operations/ResponseSettings.ts"
import type { TaskRecord } from "../../../shared/tasks/TaskRecord.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"

const settingsIn = (body: Uint8Array): object => {
  const request = JSON.parse(Buffer.from(body).toString()) as ResponsesRequest
  return { ...settingsOf(request), previous_response_id: request.previous_response_id ?? null }
}

/** `body` is that of the request, which is known to decode. */
export const view = ({ created, ended, error, id, model, status }: TaskRecord, body: Uint8Array): object => {
  const fields = error === null ? null : ErrorEnvelope.toFields(error)
  return {
    id,
    object: "response",
    created_at: Math.floor(created / 1_000),
    completed_at: status === "completed" && ended !== null ? Math.floor(ended / 1_000) : null,
    status,
    incomplete_details: null,
    error: fields === null ? null : { code: fields.code ?? "server_error", message: fields.message },
    model,
    output: [],
    usage: null,
    ...settingsIn(body),
    background: true
  }
}
