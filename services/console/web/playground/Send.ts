/** Sends a playground request to the ingress through the console, and reads the answer as it arrives. */
import { Data, Schema } from "effect"
import { keyHeader, pageHeader } from "../../api/Admin.ts"
import { type Answer, emptyAnswer, pretty, read } from "./Answer.ts"
import type { Operation } from "./Operations.ts"

export interface Request {
  readonly operation: Operation
  readonly path: string
  readonly body: object
  readonly key: string
}

/** An error response of the gateway. */
export class RequestRejected extends Data.Error<{
  readonly status: number
  readonly code: string | null
  readonly message: string
}> {}

const ErrorBody = Schema.Struct({
  error: Schema.Struct({
    message: Schema.String,
    code: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite])))
  })
})
const decodeError = Schema.decodeUnknownOption(Schema.fromJsonString(ErrorBody))
const decodeJson = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Unknown))

const Task = Schema.Struct({ task_id: Schema.String })
const TaskState = Schema.Struct({
  status: Schema.String,
  progress: Schema.Finite,
  error: Schema.NullOr(Schema.Struct({ message: Schema.String, code: Schema.NullOr(Schema.String) }))
})
const decodeTask = Schema.decodeUnknownSync(Task)
const decodeTaskState = Schema.decodeUnknownSync(TaskState)

const pollIntervalMs = 700

/** Sends a request to the ingress. Throws `RequestRejected` if it answers with an error. */
export const ask = async (path: string, key: string, init: RequestInit = {}): Promise<Response> => {
  const response = await fetch(`/gateway${path}`, {
    ...init,
    headers: { [pageHeader]: "1", [keyHeader]: key, ...Object.fromEntries(new Headers(init.headers)) }
  })
  if (response.ok) return response
  const text = await response.text()
  const error = decodeError(text)
  const { status, statusText } = response
  if (error._tag === "None") throw new RequestRejected({ status, code: null, message: text || statusText })
  const { code = null, message } = error.value.error
  throw new RequestRejected({ status, code: code === null ? null : String(code), message })
}

/** The data of each server-sent event. */
async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.getReader()
  const utf8 = new TextDecoder()
  let rest = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const frames = (rest + utf8.decode(value, { stream: true })).replaceAll("\r\n", "\n").split("\n\n")
    rest = frames.pop() ?? ""
    for (const frame of frames) {
      const data = frame.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim())
      if (data.length > 0) yield data.join("\n")
    }
  }
}

async function* streamed(body: ReadableStream<Uint8Array>): AsyncGenerator<Answer> {
  let answer = emptyAnswer
  for await (const data of events(body)) {
    if (data === "[DONE]") continue
    const failure = decodeError(data)
    if (failure._tag === "Some") {
      throw new RequestRejected({ status: 200, code: null, message: failure.value.error.message })
    }
    const value = decodeJson(data)
    const { pictures, text } = read(value)
    answer = {
      ...answer,
      text: answer.text + text,
      pictures: [...answer.pictures, ...pictures],
      raw: `${answer.raw}${answer.raw === "" ? "" : "\n"}${pretty(value).replaceAll(/\n\s*/g, " ")}`
    }
    yield answer
  }
}

async function* video(task: unknown, { key, operation }: Request, signal: AbortSignal): AsyncGenerator<Answer> {
  const path = `${operation.path("", {})}/${encodeURIComponent(decodeTask(task).task_id)}`
  for (;;) {
    const value: unknown = await (await ask(path, key, { signal })).json()
    const state = decodeTaskState(value)
    const answer = { ...emptyAnswer, progress: state.progress, raw: pretty(value) }
    if (state.error !== null) throw new RequestRejected({ status: 200, ...state.error })
    if (state.status === "completed") {
      const content = await (await ask(`${path}/content`, key, { signal })).blob()
      yield { ...answer, video: URL.createObjectURL(new Blob([content], { type: "video/mp4" })) }
      return
    }
    yield answer
    await new Promise((resolve) => setTimeout(resolve, pollIntervalMs))
  }
}

/** Yields the answer after each change. Throws `RequestRejected` if the gateway answers with an error. */
export async function* send(request: Request, signal: AbortSignal): AsyncGenerator<Answer> {
  const { body, key, operation, path } = request
  const response = await ask(path, key, {
    method: "POST",
    headers: { "content-type": "application/json", ...operation.headers },
    body: JSON.stringify(body),
    signal
  })
  const type = response.headers.get("content-type") ?? ""
  if (type.startsWith("text/event-stream") && response.body !== null) {
    yield* streamed(response.body)
    return
  }
  if (operation.answer === "sound") {
    const blob = await response.blob()
    yield { ...emptyAnswer, sound: { url: URL.createObjectURL(blob), type }, raw: `${type}, ${blob.size} bytes` }
    return
  }
  const value: unknown = await response.json()
  if (operation.answer === "video") {
    yield { ...emptyAnswer, progress: 0, raw: pretty(value) }
    yield* video(value, request, signal)
    return
  }
  yield { ...emptyAnswer, ...read(value), raw: pretty(value) }
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The request as a curl command. The key is `$KEY`, and images are placeholders. */
export const curlOf = ({ body, operation, path }: Request, gatewayUrl: string): string => {
  const json = JSON.stringify(
    body,
    (_, value: unknown) => typeof value === "string" && value.startsWith("data:") ? "data:image/png;base64,…" : value
  )
  const headers = Object.entries({ "content-type": "application/json", ...operation.headers })
  return [
    `curl -sS ${quoted(`${gatewayUrl}${path}`)}`,
    `  -H "authorization: Bearer $KEY"`,
    ...headers.map(([name, value]) => `  -H ${quoted(`${name}: ${value}`)}`),
    `  -d ${quoted(json)}`,
    ...(operation.answer === "sound" ? ["  -o speech.mp3"] : [])
  ].join(" \\\n")
}
