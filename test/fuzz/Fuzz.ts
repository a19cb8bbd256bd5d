/**
 * Malformed requests and very large ones for every operation: each must be served or rejected with a clear error in time, and
 * the same processes must still serve afterwards.
 */
import { type Gateway, otherWorkloads } from "../fixture/gateway/Gateway.ts"
import { mutations } from "../fixture/client/Mutations.ts"
import { type SampleRequest, sampleRequests } from "../fixture/client/Requests.ts"
import { type Shape, shapes } from "../fixture/Shapes.ts"
import { pathRequests } from "./StoredResponses.ts"
import { uploads } from "./Uploads.ts"

export interface FuzzOptions {
  readonly seed: number
  /** The number of requests over all operations. */
  readonly requests: number
  readonly clients: number
  /** The time within which a body of 2 MB is answered or rejected, in milliseconds. */
  readonly answeredWithinMs: number
  /** Sends every n-th shape of such bodies. */
  readonly shapeStep: number
  readonly log: (line: string) => void
}

/** A request with a forbidden answer, or none. */
export interface Finding {
  readonly operation: string
  readonly body: string
  readonly answer: string
}

export interface FuzzReport {
  /** The number of answers of each status, by operation. */
  readonly statuses: Readonly<Record<string, Readonly<Record<string, number>>>>
  readonly findings: ReadonlyArray<Finding>
  /** The slowest answers to large bodies, the slowest first. */
  readonly slowest: ReadonlyArray<Timed>
  /** Processes that exited, and errors in their logs. */
  readonly broken: ReadonlyArray<string>
}

/** A large body, and the time until its answer. */
export interface Timed {
  readonly operation: string
  readonly shape: string
  readonly bytes: number
  readonly status: Answer["status"]
  readonly milliseconds: number
}

/** The size of a large body. */
const largeBytes = 2_000_000

/** A large body of this shape. */
const largeBody = (shape: Shape): Buffer => {
  const some = 2_000
  const perElement = Buffer.byteLength(JSON.stringify(shape.body(some))) / some
  return Buffer.from(JSON.stringify(shape.body(Math.floor(largeBytes / perElement))))
}

/** Used in turn. */
const idempotencyKeys = [undefined, undefined, undefined, undefined, "one", "", "two", "\u00e9", "a".repeat(300)]

/** The services' settings: no request times out in the queue. */
export const environment = { GATEWAY_QUEUE_TIMEOUT_MS: "60000" }
export const services = otherWorkloads

/** Longer than any of these requests takes on a busy machine, in milliseconds. */
const patienceMs = 90_000

/** Media engines take seconds instead of milliseconds, so they get fewer requests. */
const shareOf = ({ operation }: SampleRequest): number => /^(?:images|video|audio)\./.test(operation) ? 0.2 : 1

const internalError = /"level":"(?:ERROR|FATAL)".*/

export const fuzz = async (gateway: Gateway, options: FuzzOptions): Promise<FuzzReport> => {
  const { answeredWithinMs, clients, log, requests, seed, shapeStep } = options
  const shares = sampleRequests.reduce((sum, sample) => sum + shareOf(sample), 0)
  const statuses: Record<string, Record<string, number>> = {}
  const findings: Array<Finding> = []

  let sent = 0
  const send = async (sample: SampleRequest, body: Buffer, own: Record<string, number>) => {
    const { headers, operation, path } = sample
    // the valid request comes without one
    const key = own["200"] === undefined ? undefined : idempotencyKeys[sent++ % idempotencyKeys.length]
    const answer = await post(
      gateway,
      path,
      { ...headers, ...(key === undefined ? {} : { "idempotency-key": key }) },
      body
    )
    own[answer.status] = (own[answer.status] ?? 0) + 1
    const problem = problemOf(answer)
    if (problem !== undefined) {
      findings.push({ operation, body: body.toString("latin1").slice(0, 500), answer: problem })
    }
    const task = /"task_id":"(\w+)"/.exec(answer.text)?.[1]
    // the task's result is not needed
    if (task !== undefined) await cancel(gateway, `${path}/${task}`)
  }

  for (const [index, sample] of sampleRequests.entries()) {
    const own: Record<string, number> = {}
    statuses[sample.operation] = own
    const malformed = mutations(sample.body, Math.ceil(requests * shareOf(sample) / shares), seed + index)
    // the valid request, from which the others are derived, must be served
    const next = [Buffer.from(JSON.stringify(sample.body)), ...malformed].values()
    await Promise.all(Array.from({ length: clients }, async () => {
      for (const body of next) await send(sample, body, own)
    }))
    if (own["200"] === undefined) {
      findings.push({ operation: sample.operation, body: JSON.stringify(sample.body), answer: "never served" })
    }
    log(`${sample.operation.padEnd(24)} ${JSON.stringify(own)}`)
  }
  statuses["responses/{id}"] = await fuzzStored(
    gateway,
    { clients, seed, requests: Math.ceil(requests / 4) },
    findings
  )
  log(`${"responses/{id}".padEnd(24)} ${JSON.stringify(statuses["responses/{id}"])}`)
  statuses["files"] = await fuzzUploads(gateway, { clients, seed, requests: Math.ceil(requests / 4) }, findings)
  log(`${"files".padEnd(24)} ${JSON.stringify(statuses["files"])}`)
  statuses["batches"] = await fuzzBatches(gateway, { clients, seed, requests: Math.ceil(requests / 4) }, findings)
  log(`${"batches".padEnd(24)} ${JSON.stringify(statuses["batches"])}`)
  // one after the other, to time each alone; the best of three, because the machine may be busy
  const timed: Array<Timed> = []
  for (const shape of shapes.filter((_, index) => index % shapeStep === 0)) {
    const { name, sample: { headers, operation, path } } = shape
    const body = largeBody(shape)
    const tries: Array<Timed> = []
    do {
      const begun = performance.now()
      const answer = await post(gateway, path, headers, body)
      const { status, text } = answer
      tries.push({
        operation,
        shape: name,
        bytes: body.length,
        status,
        milliseconds: Math.round(performance.now() - begun)
      })
      const problem = problemOf(answer)
      if (problem !== undefined) findings.push({ operation, body: `${body.length} bytes: ${name}`, answer: problem })
      const task = /"task_id":"(\w+)"/.exec(text)?.[1]
      if (task !== undefined) await cancel(gateway, `${path}/${task}`)
    } while (tries.length < 3 && tries.every(({ milliseconds }) => milliseconds > answeredWithinMs))
    timed.push(...tries.slice(-1))
  }
  const slowest = timed.toSorted((one, other) => other.milliseconds - one.milliseconds).slice(0, 10)
  log(`${timed.length} shapes of 2 MB; the slowest answers:`)
  for (const { milliseconds, operation, shape, status } of slowest) {
    log(`${String(milliseconds).padStart(6)} ms  ${status}  ${operation}: ${shape}`)
  }
  for (const { milliseconds, operation, shape } of timed) {
    if (milliseconds <= answeredWithinMs) continue
    findings.push({ operation, body: shape, answer: `took ${milliseconds} ms, more than ${answeredWithinMs}` })
  }
  const broken = gateway.processes.flatMap(({ hasExited, log, name }) => [
    ...(hasExited ? [`${name} exited`] : []),
    ...log.split("\n").filter((line) => internalError.test(line)).map((line) => `${name}: ${line}`)
  ])
  return { statuses, findings, slowest, broken }
}

/** The routes of stored responses and of tasks. Returns the number of answers of each status. */
const fuzzStored = async (
  gateway: Gateway,
  { clients, requests, seed }: Pick<FuzzOptions, "clients" | "requests" | "seed">,
  findings: Array<Finding>
): Promise<Record<string, number>> => {
  const own: Record<string, number> = {}
  const body = Buffer.from(JSON.stringify({ model: "local-chat", input: "Say: one", background: true, stream: true }))
  const { text } = await post(gateway, "/v1/responses", {}, body)
  const id = /resp_[0-9a-f]{32}/.exec(text)?.[0] ?? ""
  const next = pathRequests(id, requests, seed).values()
  await Promise.all(Array.from({ length: clients }, async () => {
    for (const { headers, method, path } of next) {
      const answer = await ask(gateway, path, { method, headers })
      own[answer.status] = (own[answer.status] ?? 0) + 1
      const problem = method === "HEAD" && answer.text === "" ? undefined : problemOf(answer)
      if (problem !== undefined) findings.push({ operation: `${method} responses`, body: path, answer: problem })
    }
  }))
  const { status } = await ask(gateway, `/v1/responses/${id}`, { method: "DELETE" })
  if (status !== 200) findings.push({ operation: "DELETE responses", body: id, answer: `${status}` })
  return own
}

/** Uploads of files, which are deleted again. Returns the number of answers of each status. */
const fuzzUploads = async (
  gateway: Gateway,
  { clients, requests, seed }: Pick<FuzzOptions, "clients" | "requests" | "seed">,
  findings: Array<Finding>
): Promise<Record<string, number>> => {
  const own: Record<string, number> = {}
  const next = uploads(requests, seed).values()
  await Promise.all(Array.from({ length: clients }, async () => {
    for (const { body, contentType } of next) {
      const answer = await post(gateway, "/v1/files", { "content-type": contentType }, body)
      own[answer.status] = (own[answer.status] ?? 0) + 1
      const problem = problemOf(answer)
      if (problem !== undefined) findings.push({ operation: "files", body: body.toString("latin1"), answer: problem })
      const id = /file-[0-9a-f]{32}/.exec(answer.text)?.[0]
      if (id !== undefined) await cancel(gateway, `/v1/files/${id}`)
    }
  }))
  if (own["200"] === undefined) findings.push({ operation: "files", body: "valid", answer: "never served" })
  return own
}

/** Bodies that create batches, in both forms. Nothing performs them. */
const batchBodies = {
  "/v1/batches": {
    input_file_id: `file-${"0".repeat(32)}`,
    endpoint: "/v1/chat/completions",
    completion_window: "24h",
    metadata: { a: "b" }
  },
  "/v1/messages/batches": {
    requests: [
      { custom_id: "a", params: { model: "m", max_tokens: 1, messages: [{ role: "user", content: "a" }] } },
      { custom_id: "b", params: {} }
    ]
  }
}

const fuzzBatches = async (
  gateway: Gateway,
  { clients, requests, seed }: Pick<FuzzOptions, "clients" | "requests" | "seed">,
  findings: Array<Finding>
): Promise<Record<string, number>> => {
  const own: Record<string, number> = {}
  for (const [path, body] of Object.entries(batchBodies)) {
    const next = [Buffer.from(JSON.stringify(body)), ...mutations(body, Math.ceil(requests / 2), seed)].values()
    await Promise.all(Array.from({ length: clients }, async () => {
      for (const body of next) {
        const answer = await post(gateway, path, {}, body)
        own[answer.status] = (own[answer.status] ?? 0) + 1
        const problem = problemOf(answer)
        if (problem !== undefined) findings.push({ operation: path, body: body.toString("latin1"), answer: problem })
      }
    }))
  }
  return own
}

interface Answer {
  /** The status, or the reason for its absence. */
  readonly status: number | "hung" | "broken"
  readonly text: string
}

const post = (
  gateway: Gateway,
  path: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer
): Promise<Answer> =>
  ask(gateway, path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: Uint8Array.from(body)
  })

const ask = async (gateway: Gateway, path: string, { headers, ...request }: RequestInit): Promise<Answer> => {
  try {
    const answer = await fetch(`${gateway.url}${path}`, {
      ...request,
      headers: { authorization: `Bearer ${gateway.key}`, ...headers as Readonly<Record<string, string>> },
      signal: AbortSignal.timeout(patienceMs)
    })
    return { status: answer.status, text: await answer.text() }
  } catch (error) {
    const isTimeout = error instanceof Error && error.name === "TimeoutError"
    return {
      status: isTimeout ? "hung" : "broken",
      text: String(error instanceof Error ? error.cause ?? error : error)
    }
  }
}

/** No answer, an internal error, or a rejection without a reason. */
const problemOf = ({ status, text }: Answer): string | undefined => {
  if (typeof status === "string" || status >= 500) return `${status} ${text.slice(0, 500)}`
  if (status < 400) return undefined
  const { error } = JSON.parse(text) as { readonly error?: { readonly message?: unknown; readonly type?: unknown } }
  return typeof error?.message === "string" && typeof error.type === "string" ? undefined : `${status} ${text}`
}

const cancel = async (gateway: Gateway, path: string): Promise<void> => {
  const answer = await fetch(`${gateway.url}${path}`, {
    method: "DELETE",
    headers: { authorization: `Bearer ${gateway.key}` }
  })
  await answer.body?.cancel()
}
