/** Answers requests that reach no handler. Their connections need not have a response object of Node. */
import { STATUS_CODES } from "node:http"
import type { Duplex } from "node:stream"
import type { Dialect } from "../../../shared/contract/Operation.ts"
import { lingerMs } from "../../../shared/process/http/HttpServer.ts"
import * as ErrorEnvelope from "../errors/ErrorEnvelope.ts"
import type { RequestError } from "../errors/IngressError.ts"
import { RequestRecord } from "../record/RequestRecord.ts"
import { requestIds } from "../record/RequestRecords.ts"

/** The answer to a request that reaches no handler. */
export const answerTo = (dialect: Dialect, error: RequestError) => {
  const id = RequestRecord.makeId()
  const { body, headers, status } = ErrorEnvelope.toText(dialect, error, id)
  return { body, status, headers: { ...headers, ...requestIds(id) } }
}

/** Writes the answer to the connection, and closes the connection when its client does or after `lingerMs`. */
export const writeTo = (connection: Duplex, dialect: Dialect, error: RequestError): void => {
  const { body, headers, status } = answerTo(dialect, error)
  const lines = Object.entries({ ...headers, "content-length": Buffer.byteLength(body), connection: "close" })
    .map(([name, value]) => `${name}: ${value}\r\n`).join("")
  connection.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines}\r\n${body}`)
  connection.resume()
  setTimeout(() => connection.destroy(), lingerMs).unref()
}
