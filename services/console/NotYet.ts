/** Refuses requests that come before the console can serve them, as it does while NATS does not answer. */
import { Schema } from "effect"
import type { IncomingMessage, ServerResponse } from "node:http"
import { retryHeaders } from "../../shared/process/Starting.ts"
import { Unavailable } from "./api/Errors.ts"

const body = JSON.stringify(Schema.encodeSync(Unavailable)(new Unavailable()))

export const refuse = (_: IncomingMessage, response: ServerResponse): void => {
  response.writeHead(503, { "content-type": "application/json", ...retryHeaders }).end(body)
}
